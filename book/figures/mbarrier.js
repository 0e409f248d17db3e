// How an mbarrier stands behind each thing that happened to it in a run.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el } = lib;

  lib.define("mbarrier", async function (root) {
    const names = (root.dataset.recordings || "step01,step04,step07,step09").split(",");
    let name = lib.asksFor(root, names[0]);
    if (!names.includes(name)) names.unshift(name);
    let run = await lib.recording(name);
    let barrier = root.dataset.barrier || lib.barriers(run)[0];
    let list = [];

    const picture = lib.picture((width) => {
      const step = list[steps.at()];
      if (!step) return lib.sheet(width, 20, "no event");
      const { expected } = step.state;
      // Where a phase was completed, what completed it is shown, and the new phase below.
      const shown = step.state.complete ? step.before : step.state;
      const parts = [];
      const left = width < 480 ? 86 : 150;
      const room = width - left - 6;
      const row = (n, label) => parts.push(lib.text(0, 19 + n * 34, label, "f-label"));
      row(0, "phase");
      const number = shown.phase;
      for (let n = 0; n < 4; n += 1) {
        const phase = Math.max(number - 2, 0) + n;
        const wide = room / 4 - 4;
        const now = phase === number;
        const done = phase < number || (now && step.state.complete);
        parts.push(lib.rect(left + n * (wide + 4), 3, wide, 26, `f-cell ${done ? "f-c" : now ? "f-a" : "f-none"}${now ? " f-chosen" : ""}`));
        parts.push(lib.text(left + n * (wide + 4) + wide / 2, 20, width < 480 ? `${phase}${done ? " ✓" : ""}` : `${phase}, parity ${phase % 2}${done ? " ✓" : ""}`, "f-inside", "middle"));
      }
      row(1, width < 480 ? "arrivals" : "arrivals");
      const boxes = Math.min(expected, 16);
      for (let n = 0; n < boxes; n += 1) {
        const wide = Math.min(room / boxes - 2, 40);
        // Of more than 16 a box stands for several.
        const come = (expected - shown.pending) / expected > n / boxes;
        parts.push(lib.rect(left + n * (wide + 2), 37, wide, 26, `f-cell ${come ? "f-g" : "f-none"}`));
      }
      parts.push(lib.text(left + 4, 77, expected === 0 ? "not made yet" : `${expected - shown.pending} of ${expected} have come, ${shown.pending} missing`, "f-label"));
      const most = Math.max(...list.map((one) => Math.abs(one.before.bytes)), 0);
      if (most > 0) {
        parts.push(lib.text(0, 104, width < 480 ? "bytes" : "bytes to come", "f-label"));
        parts.push(lib.rect(left, 88, room, 26, "f-cell f-none"));
        parts.push(lib.rect(left, 88, (room * Math.abs(shown.bytes)) / most, 26, `f-cell ${shown.bytes < 0 ? "f-e" : "f-copy"}`));
        parts.push(lib.text(left + 4, 128, shown.bytes < 0 ? `${-shown.bytes} have come that nobody has announced yet` : `${shown.bytes} announced bytes are still to come`, "f-label"));
      }
      const top = most > 0 ? 140 : 90;
      const after = step.state.phase;
      for (const parity of [0, 1]) {
        const passes = after % 2 !== parity;
        parts.push(lib.rect(left + parity * (room / 2), top, room / 2 - 4, 28, `f-cell ${passes ? "f-c" : "f-e"}`));
        parts.push(lib.text(left + parity * (room / 2) + room / 4 - 2, top + 18, `parity ${parity}: ${passes ? "passes" : "waits"}`, "f-inside", "middle"));
      }
      parts.push(lib.text(0, top + 18, width < 480 ? "a wait for" : "now a wait for", "f-label"));
      return lib.sheet(width, top + 32, `${barrier}: phase ${number}, ${shown.pending} arrivals and ${shown.bytes} bytes missing`, ...parts);
    });

    const line = (step) => {
      const done = step.state.complete ? ` Phase ${step.before.phase} is complete, phase ${step.state.phase} begins.` : "";
      return `${step.words}.${done}`;
    };
    const steps = lib.stepper({
      label: "What happens to the mbarrier",
      count: () => list.length,
      show: (at) => {
        picture.again();
        const step = list[at];
        if (!step) return "Nothing happens to this mbarrier.";
        const end = at === list.length - 1 && !run.completed ? " The run does not come to its end." : "";
        return `Cycle ${step.at}: ${line(step)}${end}`;
      },
    });
    const table = lib.details("All that happens to it, as a table", () => lib.table(["cycle", "what", "phase", "arrivals missing", "bytes to come"],
      list.map((step) => [String(step.at), line(step), String(step.state.phase), String(step.state.pending), String(step.state.bytes)]), `${barrier} of CTA 0, ${lib.nameOf(name)}`));
    const choices = el("span", { class: "figure-field" });
    function refill() {
      const all = lib.barriers(run);
      if (!all.includes(barrier)) barrier = all[0];
      choices.replaceChildren(lib.choice("mbarrier", all.map((one) => [one, one]), barrier, (value) => { barrier = value; begin(); }));
    }
    function begin() {
      list = lib.barrier(run, barrier, 0);
      steps.go(0);
      table.again();
    }
    const controls = el("div", { class: "figure-controls" },
      names.length > 1 ? lib.choice("run", names.map((one) => [one, lib.nameOf(one)]), name, async (value) => {
        name = value;
        run = await lib.recording(name);
        refill();
        begin();
      }) : null, choices, steps);
    refill();
    lib.frame(root, "an mbarrier, event by event", [controls, picture, steps.says, table], steps);
    begin();
  });
})();
