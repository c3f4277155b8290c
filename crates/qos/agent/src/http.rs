// SPDX-License-Identifier: MIT
//! Serves HTTP to Prometheus on a loopback address. Each connection carries one request. The size, number and duration
//! of connections are limited.
//!
//! httparse parses requests. The other features of a server library (bodies, persistent connections, encodings) are not
//! needed, and no small library limits the time that a client may take.

use crate::error::{Result, asking, bail};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest request; Prometheus sends about 300 bytes.
const MAX_REQUEST_BYTES: usize = 8192;
const MAX_LINES: usize = 64;
/// Time limit for receiving the request, and separately for sending the response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of simultaneous connections; further ones are closed.
const MAX_CONNECTIONS: usize = 16;
/// Pause after accept() has failed, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct HttpResponse {
    pub status: &'static str,
    pub content_type: &'static str,
    pub body: Arc<str>,
}

impl HttpResponse {
    pub fn words(status: &'static str, words: &str) -> HttpResponse {
        HttpResponse { status, content_type: "text/plain; charset=utf-8", body: words.into() }
    }
}

/// Listens on an address that only this machine can reach.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    if !address.ip().is_loopback() {
        bail!(
            "{address} is reachable from elsewhere, and the metrics name programs: listen on a loopback address, such \
             as 127.0.0.1:{}",
            address.port()
        );
    }
    TcpListener::bind(address).map_err(asking(format!("cannot listen on {address}")))
}

/// Serves requests forever. `give` gets the Accept header and is called from several threads.
pub fn serve(listener: &TcpListener, give: impl Fn(&str) -> HttpResponse + Send + Sync + 'static) -> ! {
    // Each connection has a clone of `open`.
    let (give, open) = (Arc::new(give), Arc::new(()));
    loop {
        let Ok((connection, _)) = listener.accept() else {
            std::thread::sleep(PAUSE);
            continue;
        };
        if Arc::strong_count(&open) > MAX_CONNECTIONS {
            continue;
        }
        let (give, open) = (Arc::clone(&give), Arc::clone(&open));
        // Neither a broken connection nor a lack of threads must stop the server.
        let _ = std::thread::Builder::new().spawn(move || {
            let _ = answer(connection, &*give);
            drop(open);
        });
    }
}

fn answer(mut connection: TcpStream, give: &dyn Fn(&str) -> HttpResponse) -> io::Result<()> {
    let request = read(&mut connection, Instant::now() + PATIENCE)?;
    let (answer, with_body) = match parse(&request) {
        Some(Request { method: method @ ("GET" | "HEAD"), path: "/metrics" | "/", accept }) => {
            (give(accept), method == "GET")
        }
        Some(Request { method: "GET" | "HEAD", .. }) => {
            (HttpResponse::words("404 Not Found", "the metrics are at /metrics\n"), true)
        }
        Some(_) => (HttpResponse::words("405 Method Not Allowed", "only GET is supported\n"), true),
        None => (HttpResponse::words("400 Bad Request", "this is not an HTTP request\n"), true),
    };
    let HttpResponse { status, content_type, body } = answer;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let until = Instant::now() + PATIENCE;
    write(&mut connection, head.as_bytes(), until)?;
    if with_body { write(&mut connection, body.as_bytes(), until) } else { Ok(()) }
}

#[derive(Debug, PartialEq, Eq)]
struct Request<'a> {
    method: &'a str,
    path: &'a str,
    accept: &'a str,
}

/// Parses a request; `None` if it is not HTTP.
fn parse(request: &[u8]) -> Option<Request<'_>> {
    let mut lines = [httparse::EMPTY_HEADER; MAX_LINES];
    let mut parsed = httparse::Request::new(&mut lines);
    if !parsed.parse(request).ok()?.is_complete() {
        return None;
    }
    let accept = parsed.headers.iter().find(|line| line.name.eq_ignore_ascii_case("accept"));
    let accept = accept.and_then(|line| std::str::from_utf8(line.value).ok()).unwrap_or_default();
    let path = parsed.path?.split('?').next().unwrap_or_default();
    Some(Request { method: parsed.method?, path, accept })
}

/// Reads up to the empty line or the size limit.
fn read(connection: &mut TcpStream, until: Instant) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut chunk = [0; 1024];
    while request.len() < MAX_REQUEST_BYTES && !request.windows(4).any(|end| end == b"\r\n\r\n") {
        connection.set_read_timeout(Some(left(until)?))?;
        match connection.read(&mut chunk)? {
            0 => break,
            bytes => request.extend_from_slice(&chunk[..bytes]),
        }
    }
    Ok(request)
}

/// Writes within the time limit, even if the client reads only a byte at a time.
fn write(connection: &mut TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        connection.set_write_timeout(Some(left(until)?))?;
        match connection.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_parsed_and_noise_is_rejected() {
        let asked = b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nACCEPT: b/c\r\n\r\n";
        assert_eq!(parse(asked), Some(Request { method: "GET", path: "/metrics", accept: "b/c" }));
        for length in 0..asked.len() {
            assert_eq!(parse(&asked[..length]), None, "cut at {length}");
        }
        for noise in [&b"\0\x01\r\n\r\n"[..], b"GET\r\n\r\n", b"\r\n\r\n", &[0xff; 64], b"GET / HTTP/9.9\r\n\r\n"] {
            assert_eq!(parse(noise), None, "{noise:?}");
        }
        let many = [b"GET / HTTP/1.1\r\n".to_vec(), b"a: b\r\n".repeat(MAX_LINES + 1), b"\r\n".to_vec()].concat();
        assert_eq!(parse(&many), None);
    }

    #[test]
    fn only_loopback_addresses_are_accepted() {
        assert!(listen("0.0.0.0:0".parse().unwrap()).unwrap_err().to_string().contains("loopback"));
        assert!(listen("[::1]:0".parse().unwrap()).is_ok() || listen("127.0.0.1:0".parse().unwrap()).is_ok());
    }
}
