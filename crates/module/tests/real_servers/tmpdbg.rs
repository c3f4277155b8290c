use crate::fixture::*;
use crate::wire::opcode;
use xqos_abi::*;
use std::time::Duration;
#[test]
fn lost_yields() {
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let tid = fixture.switches().unwrap().iter().find(|t| t.name.contains("xqos")).unwrap().tid;
    let path = format!("/proc/{}/task/{tid}/schedstat", fixture.pid());
    let mpath = format!("/proc/{}/schedstat", fixture.pid());
    let delay = |p: &str| std::fs::read_to_string(p).unwrap().split_whitespace().map(|w| w.parse::<u64>().unwrap()).collect::<Vec<_>>();
    let mut holder = fixture.native();
    let canvas = holder.canvas(500, 500);
    let mut lost = 0;
    for _ in 0..300 {
        holder.tell_xqos(Request::SetReservation { client: 0, budget_us: 1000, period_us: 10_000, hard: true }).unwrap();
        let b = (delay(&path), delay(&mpath), entry(&control, holder.base));
        let mut bytes = canvas.fill(150);
        bytes.extend(holder.message(opcode::GRAB_SERVER, 0).finish());
        bytes.extend(holder.message(opcode::UNGRAB_SERVER, 0).finish());
        (0..3).for_each(|_| holder.send(&[]));
        holder.send_raw(&bytes);
        std::thread::sleep(Duration::from_millis(40));
        let e = entry(&control, holder.base);
        let a = (delay(&path), delay(&mpath));
        holder.tell_xqos(Request::ClearReservation { client: 0 }).ok();
        control.release(holder.base).unwrap();
        holder.sync();
        if e.depletions == b.2.depletions {
            lost += 1;
            println!("not cut: took {} us; watcher ran {} us, delayed {} us in {} slices; main delayed {} us; requests {} slices {}", (e.server_time_ns - b.2.server_time_ns)/1000, (a.0[0]-b.0[0])/1000, (a.0[1]-b.0[1])/1000, a.0[2]-b.0[2], (a.1[1]-b.1[1])/1000, e.requests - b.2.requests, e.slices-b.2.slices);
        }
    }
    println!("lost {lost}");
}
