// Never compiled: what `.loc` names in exchange.ptx.
fn exchange(k: &mut Kernel) {
    k.store(mine, lane);
    // Here a barrier is missing.
    k.load(yours);
}
