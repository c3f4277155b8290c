// SPDX-License-Identifier: MIT
//! Records of the kernel as text.

use crate::model::text;
use xqos_abi::trace::Entry;
use xqos_text::time::of_ns;

pub(super) fn kernel_details(what: &Entry) -> String {
    let soft = |is_soft| if is_soft { "soft " } else { "" };
    match *what {
        Entry::Switch { cpu, from, to, still_runnable } => {
            format!("cpu {cpu}: {from}{} -> {to}", if still_runnable { " (runnable)" } else { "" })
        }
        Entry::Wakeup { cpu, thread } => format!("cpu {cpu}: {thread} woken"),
        Entry::Interrupt { cpu, number, is_soft, ns } => {
            format!("cpu {cpu}: {}interrupt {number}, {}", soft(is_soft), of_ns(ns))
        }
        Entry::InterruptName { number, is_soft, bytes } => {
            format!("{}interrupt {number} is {}", soft(is_soft), text(&bytes))
        }
        Entry::ThreadName { thread, bytes } => format!("{thread} is {}", text(&bytes)),
        Entry::Thread { thread, process } => format!("{thread} belongs to process {process}"),
        Entry::Priority { thread, priority } => format!("{thread} has priority {priority}"),
        _ => String::new(),
    }
}
