//! Executes one instruction of a fragment.

use super::State;
use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::{At, Span};
use crate::program::op::{FenceWays, Inst, Op, Reg};
use crate::program::opcode;

/// The high half of a generic address of local memory.
pub const LOCAL_WINDOW: u64 = 0x0000_7c00_0000_0000;
/// The high half of a generic address of a parameter.
pub const PARAM_WINDOW: u64 = 0x0000_7d00_0000_0000;
/// The high half of a generic address of shared memory.
pub const SHARED_WINDOW: u64 = 0x0000_7e00_0000_0000;

impl<'a> Cluster<'a> {
    /// Executes the next instruction of fragment `f` of warp `w`.
    #[inline]
    pub fn step(&mut self, w: usize, f: usize) -> Result<(), Stop> {
        let kernel = self.kernel;
        let fragment = &self.warps[w].fragments[f];
        let (pc, active) = (fragment.pc, fragment.mask);
        let inst = &kernel.code[pc as usize];
        let site = inst.site;

        // Values still on their way from memory are waited for where they are used.
        let warp = &mut self.warps[w];
        let now = warp.fragments[f].ready_at;
        let mut time = now;
        if warp.on_the_way.concerns(inst, now) {
            time = warp.on_the_way.ready(inst, now);
            if matches!(inst.op, Op::Store(_)) {
                // The compiler moves loads ahead of a store that waits for its value: the warp goes on, up to the next
                // instruction that orders memory, or to the end of a loop's round.
                warp.stores_ready_at = warp.stores_ready_at.max(time);
                time = now;
            }
            warp.on_the_way.arrived(&warp.registers, time);
        }
        let cta = &mut self.ctas[warp.cta];
        cta.busy.issue += 1;
        let slots = &mut cta.issue[warp.index as usize % 4];
        warp.fragments[f].ready_at = slots.take(time, cta.slowed.issue);
        if !warp.open_loads.is_empty() && warp.registers.waits_for_load(inst) {
            self.check_open_loads(w, f, &inst.uses, &inst.defs, site);
        }

        let Some(mask) = self.warps[w].registers.guarded(inst, active) else {
            return Err(self.undefined_operand(w, site, Reg::Pred(inst.guard), "the guard predicate"));
        };

        if inst.facts.fragments && mask != 0 && self.touches_fragments(w, f, inst) {
            return Ok(());
        }
        let warp = &mut self.warps[w];
        let undefined = warp.registers.undefined(inst, mask);
        let fragment = &mut warp.fragments[f];
        if inst.facts.plain {
            fragment.ready_at += self.costs.issue;
            fragment.pc = pc + 1;
            if mask != 0 {
                self.plain(w, mask, inst, undefined);
            }
            return Ok(());
        }
        if inst.facts.guarded {
            self.forks.note(w, pc, mask != active, mask != 0);
        }
        if inst.facts.orders_memory {
            fragment.ready_at = fragment.ready_at.max(warp.stores_ready_at);
        }

        if let Op::BranchTable { index, targets, reconverge } = &inst.op {
            self.warps[w].fragments[f].ready_at += self.costs.issue;
            return self.branch_table(At { w, f, mask, site }, *index, targets, *reconverge);
        }
        if let Op::Branch { target, reconverge } = inst.op {
            self.warps[w].fragments[f].ready_at += self.costs.issue;
            if mask == 0 {
                self.warps[w].fragments[f].pc = pc + 1;
            } else if mask == active {
                let warp = &mut self.warps[w];
                if target <= pc {
                    warp.fragments[f].ready_at = warp.fragments[f].ready_at.max(warp.stores_ready_at);
                }
                warp.fragments[f].pc = target;
                if target <= pc {
                    self.goes_round(w, f, pc);
                    if self.instructions >= self.watched {
                        self.watch_round(w, pc, target);
                    }
                }
            } else if kernel.code.get(target as usize).is_some_and(|to| matches!(to.op, Op::Exit) && !to.facts.guarded)
            {
                // They end, and wait for nobody before: barriers count them as there.
                self.exit(w, f, mask);
            } else {
                self.part(w, f, mask, target, reconverge);
            }
            return Ok(());
        }
        self.warps[w].fragments[f].ready_at += self.costs.issue;
        if mask == 0 {
            self.warps[w].fragments[f].pc = pc + 1;
            return Ok(());
        }
        if let Op::Exit = inst.op {
            self.exit(w, f, mask);
            return Ok(());
        }

        let at = At { w, f, mask, site };
        self.count_change(&inst.op);
        // Memory and synchronisation decide themselves what an undefined operand means.
        match &inst.op {
            Op::Load(op) => self.load(at, op)?,
            Op::Store(op) => self.store(at, op)?,
            Op::Atomic(op) => self.atomic(at, op)?,
            Op::TensorStore { shape, tensor, s, unpack } => self.tensor_store(at, *shape, tensor, s, *unpack)?,
            Op::Wgmma(op) => self.wgmma(at, op)?,
            Op::WgmmaFence | Op::WgmmaCommit | Op::WgmmaWait { .. } => self.wgmma_order(at, &inst.op)?,
            op if inst.facts.visible || op.exchanges() || matches!(op, Op::WarpSync { .. }) => {
                // What only moves values moves undefined ones as well: who gets them has that.
                let moves = |r: Reg| match op {
                    Op::Shuffle { a, b, c, .. } => a != b && a != c && r == Reg::B32(*a),
                    Op::MatrixStore { address, s, .. } => r != address.base && s.iter().any(|&s| r == Reg::B32(s)),
                    _ => false,
                };
                let undefined = |&r: &Reg| !moves(r) && mask & !self.warps[w].registers.defined(r) != 0;
                if let Some(reg) = inst.uses.iter().copied().find(undefined) {
                    return Err(self.undefined_operand(w, site, reg, "an operand"));
                }
                self.synchronise(at, op)?;
            }
            Op::WarpMma(op) => self.warp_mma(at, op)?,
            Op::MoveMatrix { d, a } => self.move_matrix(at, *d, *a)?,
            Op::MapRelease { scope } => self.map_release(at, *scope),
            Op::ProxyFence { shared, global } => {
                self.warps[w].fragments[f].ready_at += self.costs.fence;
                self.proxy_fence(w, mask, (*shared, *global), site);
                let (actor, time) = self.when(w, f);
                self.trace(self.warps[w].cta, actor, Span::of_warp(w, time, time), site, || {
                    crate::report::EventKind::ProxyFence
                });
            }
            Op::IsCanceled { p, response } => {
                let refused = self.query(w, mask, *response, Some(*p), &[], 0);
                if refused & !undefined != 0 {
                    self.see_refusal(w, mask, site);
                }
                self.warps[w].registers.set_defined(Reg::Pred(*p), mask, !undefined);
                if undefined != 0 {
                    self.inherit_origin(w, &inst.uses, Reg::Pred(*p), mask, site);
                }
            }
            Op::FirstCta { d, response, first } => {
                let refused = self.query(w, mask, *response, None, d, *first) & !undefined;
                for &reg in d {
                    self.warps[w].registers.set_defined(reg, mask, !(undefined | refused));
                    if undefined != 0 {
                        self.inherit_origin(w, &inst.uses, reg, mask, site);
                    } else if refused != 0 {
                        let origin = self.origin(site, "the request was refused: there is no first CTA".into());
                        self.warps[w].origins.insert(reg, origin);
                    }
                }
            }
            Op::IsSpace { p, s, space } => {
                self.is_space(w, mask, *p, *s, *space);
                self.warps[w].registers.set_defined(Reg::Pred(*p), mask, !undefined);
                if undefined != 0 {
                    self.inherit_origin(w, &inst.uses, Reg::Pred(*p), mask, site);
                }
            }
            Op::InitFence => {
                self.warps[w].fragments[f].ready_at += self.costs.fence;
                self.warps[w].init_fence();
            }
            Op::Fence { scope, ways } => {
                self.warps[w].untold.told(mask);
                self.warps[w].fragments[f].ready_at += self.costs.fence;
                match ways {
                    FenceWays::Both => self.warps[w].fence(*scope),
                    FenceWays::Acquire => self.warps[w].acquire_fence(*scope),
                    FenceWays::Release => self.warps[w].release_fence(*scope),
                }
            }
            Op::Hint => {}
            Op::GridWait => self.wait_for_prerequisite(w),
            Op::TensorFence { .. } | Op::TensorRelinquish | Op::TensorWait { .. } => self.tensor_wait(at, &inst.op)?,
            Op::Sleep => self.warps[w].fragments[f].ready_at += 100,
            Op::Print { format, arguments, result } => self.print(at, *format, *arguments, *result)?,
            Op::Trap(trap) => return Err(Some(Box::new(self.trapped(at, *trap)))),
            _ => {}
        }
        // Whoever blocked or was merged has moved on already.
        if let Some(fragment) = self.warps[w].fragments.get_mut(f)
            && fragment.pc == pc
            && fragment.state == State::Ready
        {
            fragment.pc = pc + 1;
        }
        Ok(())
    }

    /// An operand that decides what happens is undefined: the run cannot go on.
    pub fn undefined_operand(&mut self, w: usize, site: u32, reg: Reg, what: &str) -> Stop {
        let called = self.register_name(site, reg).map_or(String::new(), |name| format!(", `{name}`,"));
        let mut labels = vec![self.label(site, format!("{what}{called} is undefined here"))];
        let mut help = "Write the value on every path that leads here.";
        if let Some(&n) = self.warps[w].origins.get(&reg) {
            let origin = self.origins[n as usize].clone();
            labels.insert(0, self.label(origin.site, origin.text));
            if let Some(store) = self.stores_there(origin.site) {
                labels.push(self.label(store, "this stores to it, and had not when it was read"));
                help = "Put a barrier that both come to (bar.sync) between the store and the load; or let every path that leads here store.";
            }
        }
        let of_alloc = |inst: &Inst| matches!(&inst.op, Op::TensorAlloc { address, .. } if inst.site == site && address.base == reg);
        if labels.len() == 1 && self.kernel.code.iter().any(of_alloc) {
            help = "The operand is no result: tcgen05.alloc stores the address of the columns to shared memory, at the address that this operand gives. \
                    Give it that of a shared variable (in inline PTX, as an input), and load what it has stored there behind a barrier.";
        }
        Some(Box::new(Diagnostic {
            code: "undefined-operand",
            severity: Severity::Error,
            title: format!("{what} of `{}` has no defined value", opcode(&self.place(site).text)),
            labels,
            rule: "Registers and memory hold unknown values until they are written (for memory, PTX ISA 8.2.6).".into(),
            help: help.into(),
            count: 1,
            confirmed: None,
        }))
    }

    /// A result is undefined because one of its sources is: it is so for the same reason.
    pub fn inherit_origin(&mut self, w: usize, uses: &[Reg], d: Reg, mask: u32, site: u32) {
        let warp = &self.warps[w];
        // Where the result is a source, too, it says so of itself already: the others first.
        let others = uses.iter().filter(|&&u| u != d).chain(uses.iter().filter(|&&u| u == d));
        let source = others.copied().find(|&u| mask & !warp.registers.defined(u) != 0);
        let known = source.and_then(|s| warp.origins.get(&s).copied());
        let origin = match known {
            Some(origin) => origin,
            None => self.origin(site, "a register is read here that nothing has written".into()),
        };
        self.warps[w].origins.insert(d, origin);
    }

    /// Actor and time, for the trace.
    pub fn when(&self, w: usize, f: usize) -> (crate::report::Actor, u64) {
        let warp = &self.warps[w];
        (crate::report::Actor::Warp(warp.index), warp.fragments.get(f).map_or(0, |f| f.ready_at))
    }
}
