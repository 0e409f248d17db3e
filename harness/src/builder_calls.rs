//! The builder's names for what the emulator's advice names in PTX: who writes kernels with the builder looks for a call.

/// An instruction as advice names it, and the call that writes it. Of two that begin alike the longer one comes first.
pub const CALLS: &[(&str, &str)] = &[
    ("bar.sync 0", "sync"),
    ("barrier.cluster.arrive", "cluster_sync"),
    ("cp.async.bulk.commit_group", "bulk_commit"),
    ("cp.async.bulk.wait_group.read", "bulk_wait_read"),
    ("cp.async.bulk.wait_group", "bulk_wait"),
    ("elect.sync", "elect_one"),
    ("fence.mbarrier_init", "fence_mbarrier_init"),
    ("fence.proxy.async.shared::cta", "fence_proxy_async"),
    ("mbarrier.arrive.expect_tx", "expect_tx"),
    ("tcgen05.commit with .multicast::cluster", "commit_multicast"),
    ("tcgen05.commit", "commit"),
    ("tcgen05.dealloc", "tmem_dealloc"),
    ("tcgen05.fence::after_thread_sync", "tcgen05_fence_after"),
    ("tcgen05.fence::before_thread_sync", "tcgen05_fence_before"),
    ("tcgen05.relinquish_alloc_permit", "tmem_relinquish"),
    ("tcgen05.wait::ld", "tmem_wait_load"),
];

/// The calls for the instructions that an advice names, each once: "`fence_proxy_async` writes fence.proxy.async.shared::cta".
pub fn named_in(advice: &str) -> Option<String> {
    let mut said: Vec<String> = Vec::new();
    let mut at = 0;
    while let Some(rest) = advice.get(at..) {
        match CALLS.iter().find(|(ptx, _)| rest.starts_with(ptx)) {
            Some((ptx, call)) => {
                let sentence = format!("`{call}` writes {ptx}");
                if !said.contains(&sentence) {
                    said.push(sentence);
                }
                at += ptx.len();
            }
            None => at += rest.chars().next()?.len_utf8(),
        }
        if at >= advice.len() {
            break;
        }
    }
    (!said.is_empty()).then(|| said.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_said_in_the_builders_words() {
        let advice = "Let each thread execute tcgen05.wait::ld.sync.aligned, then tcgen05.fence::before_thread_sync; tcgen05.wait::ld is enough.";
        let said =
            "`tmem_wait_load` writes tcgen05.wait::ld, `tcgen05_fence_before` writes tcgen05.fence::before_thread_sync";
        assert_eq!(named_in(advice).as_deref(), Some(said));
        let longer = named_in("Put cp.async.bulk.wait_group.read 0 before the stores: größer.");
        assert_eq!(longer.as_deref(), Some("`bulk_wait_read` writes cp.async.bulk.wait_group.read"));
        assert_eq!(named_in("Arrive once more."), None);
        assert_eq!(named_in(""), None);
    }
}
