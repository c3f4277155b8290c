//! What we ask of the kernel's scheduler: short slices, which bring a thread to a processor sooner and give it no more of
//! it. Needs no right; kernels before 6.12 ignore it.

/// The calling thread's slices, as far as it runs under the kernel's usual policy; 0 for the kernel's own choice.
pub fn ask_for_slices(ns: u64) {
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    // SAFETY: asks for the calling thread's own.
    let (policy, nice) = unsafe { (libc::sched_getscheduler(0), libc::getpriority(libc::PRIO_PROCESS, 0)) };
    if policy != libc::SCHED_OTHER {
        return;
    }
    let size = size_of::<Attributes>() as u32;
    let (policy, runtime_ns) = (libc::SCHED_OTHER as u32, ns);
    let attributes = Attributes { size, policy, flags: 0, nice, priority: 0, runtime_ns, deadline_ns: 0, period_ns: 0 };
    // SAFETY: the calling thread, and attributes of the size that they say.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}
