//! Prints how a captured start would go over the links of the paper's grid.
use xqos_wire::analysis::proxied::Proxy;
use xqos_wire::predict::script::Recorder;
use xqos_wire::predict::{foretell, grid};
use xqos_wire::session::{self, Session};

fn main() {
    let path = std::env::args().nth(1).expect("a capture");
    let proxy = std::env::args().nth(2).map(|name| name.parse::<Proxy>().unwrap());
    let mut recorder = Recorder::behind(proxy);
    session::read(path.as_ref(), Session::new(vec![&mut recorder])).unwrap();
    let script = recorder.script().expect("a whole start");
    for shape in grid::links() {
        let told = foretell(&script, &shape).unwrap();
        println!(
            "{} {} {:.4} {:.4} {:.4} {} {} {}",
            shape.rate.unwrap().get() / 1000,
            shape.delay_ns / 1000,
            told.elapsed_ns as f64 / 1e9,
            told.delay_ns as f64 / 1e9,
            told.wait_ns as f64 / 1e9,
            told.round_trips,
            told.link_bytes[0],
            told.link_bytes[1]
        );
    }
}
