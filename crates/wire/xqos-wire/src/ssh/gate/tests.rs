// SPDX-License-Identifier: MIT
//! Tests the gate with a mock server and mock peers, without ssh.

use super::*;
use std::path::PathBuf;

/// Longer than any step takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A gate in front of a server that the test plays.
struct Scene {
    folder: PathBuf,
    server: UnixListener,
}

impl Scene {
    fn new(name: &str) -> Scene {
        let folder = std::env::temp_dir().join(format!("xqos-gate-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let server = UnixListener::bind(folder.join("server")).unwrap();
        let upstream = Upstream::find(folder.join("server").to_str()).unwrap();
        server.accept().unwrap();
        Gate::start(&folder.join("gate"), session(), Cookie::magic([2; 16]), upstream).unwrap();
        Scene { folder, server }
    }

    fn peer(&self, bytes: &[u8]) -> UnixStream {
        let mut peer = UnixStream::connect(self.folder.join("gate")).unwrap();
        peer.set_read_timeout(Some(LONG)).unwrap();
        peer.write_all(bytes).unwrap();
        peer
    }

    /// Checks that a client with the session's cookie reaches the server, both ways, until both have closed.
    fn assert_serves(&self, order: ByteOrder) {
        let mut client = self.peer(&[session().setup(order), b"request".to_vec()].concat());
        let (mut server, _) = self.server.accept().unwrap();
        let mut setup = vec![0; session().setup(order).len() + 7];
        server.read_exact(&mut setup).unwrap();
        assert_eq!(setup, [Cookie::magic([2; 16]).setup(order), b"request".to_vec()].concat());
        server.write_all(b"reply").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(all(&mut server), b"", "the client's end of file arrives");
        drop(server);
        assert_eq!(all(&mut client), b"reply");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn session() -> Cookie {
    Cookie::magic([1; 16])
}

/// Everything until end of file. A peer that is closed with unread data gets an error instead.
fn all(stream: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => bytes,
    }
}

#[test]
fn a_client_with_the_sessions_cookie_reaches_the_server_with_the_servers_cookie() {
    let scene = Scene::new("serves");
    scene.assert_serves(ByteOrder::Little);
    scene.assert_serves(ByteOrder::Big);
}

#[test]
fn peers_without_the_cookie_are_refused_and_never_reach_the_server() {
    let scene = Scene::new("refuses");
    let little = ByteOrder::Little;
    let mut long = session().setup(little);
    long[8..10].copy_from_slice(&u16::MAX.to_le_bytes());
    let mut version = session().setup(little);
    version[2] = 12;
    for garbage in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0; 4096], long, version] {
        assert_eq!(all(&mut scene.peer(&garbage)), b"");
    }
    for cookie in [Cookie::default(), Cookie::magic([2; 16]), Cookie { data: vec![1; 15], ..session() }] {
        let told = all(&mut scene.peer(&cookie.setup(little)));
        assert!(String::from_utf8_lossy(&told).contains("not the cookie"), "{told:?}");
    }
    scene.server.set_nonblocking(true).unwrap();
    assert_eq!(scene.server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_flood_of_silent_peers_does_not_keep_clients_out() {
    let scene = Scene::new("flood");
    let mut peers = (0..MAX_WAITING + 20).map(|_| scene.peer(b"l")).collect::<Vec<_>>();
    scene.assert_serves(ByteOrder::Little);
    for peer in &mut peers[..20] {
        assert_eq!(all(peer), b"", "those that wait longest are disconnected");
    }
    peers.last_mut().unwrap().set_nonblocking(true).unwrap();
    assert_eq!(peers.last_mut().unwrap().read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_peer_that_never_completes_its_setup_is_refused() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&session().setup(ByteOrder::Little)[..20]).unwrap();
    let end = Instant::now() + Duration::from_millis(1);
    assert_eq!(read_until(end, &ours, &mut [0; 21]), Err(SILENT));
}
