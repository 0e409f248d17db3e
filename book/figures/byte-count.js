// What an mbarrier counts when the right number of bytes is announced, too few, or too many.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el } = lib;
  const RUNS = { bytes_right: "both tiles: 32768 bytes", bytes_of_one_tile: "one tile: 16384 bytes", bytes_of_three_tiles: "three tiles: 49152 bytes" };

  lib.define("byte-count", async function (root) {
    let name = root.dataset.recording in RUNS ? root.dataset.recording : "bytes_right";
    let run = null;
    let list = [];
    const finding = () => run.findings[0];
    const picture = lib.picture((width) => {
      const step = list[steps.at()];
      if (!step) return lib.sheet(width, 10, "nothing");
      const most = Math.max(...list.map((one) => Math.max(one.before.bytes, 0)), 1);
      const least = Math.min(...list.map((one) => one.before.bytes), 0);
      const left = 4;
      const room = width - 8;
      const scale = room / (most - least);
      const shown = step.state.complete ? step.before : step.state;
      const zero = left - least * scale;
      const parts = [lib.text(left, 14, "bytes still to come", "f-head"), lib.rect(left, 24, room, 34, "f-lane")];
      const value = shown.bytes;
      parts.push(lib.rect(value < 0 ? zero + value * scale : zero, 24, Math.abs(value) * scale, 34, `f-cell ${value < 0 ? "f-e" : "f-copy"}`));
      parts.push(lib.rect(zero - 1, 20, 2, 42, "f-exit"));
      parts.push(lib.text(left + 6, 46, `${value}`, value === 0 ? "f-label" : "f-inside"));
      const y = 84;
      parts.push(lib.text(left, y + 6, `arrivals missing: ${shown.pending} of ${shown.expected}`, "f-label"));
      const done = step.state.complete;
      parts.push(lib.rect(left, y + 16, room, 30, `f-cell ${done ? "f-c" : "f-none"}`));
      parts.push(lib.text(left + 8, y + 35, done ? `phase ${step.before.phase} is complete: no arrival and no byte is missing` : `phase ${step.state.phase} is not complete`, done ? "f-inside" : "f-label"));
      return lib.sheet(width, y + 52, `tma2mma: ${shown.bytes} bytes and ${shown.pending} arrivals missing`, ...parts);
    });
    const steps = lib.stepper({
      label: "What happens to tma2mma",
      count: () => list.length + (finding() ? 1 : 0),
      show: (at) => {
        picture.again();
        if (at >= list.length) return ["The emulator says: ", el("code", {}, finding().code), `: ${finding().title}. `, finding().help];
        const step = list[at];
        const done = step.state.complete ? ` Phase ${step.before.phase} is complete.` : "";
        return `Cycle ${step.at}: ${step.words}.${done}`;
      },
    });
    const table = lib.details("The runs as a table", () => lib.table(["cycle", "what", "arrivals missing", "bytes to come"], list.map((step) => [String(step.at), step.words, String(step.state.pending), String(step.state.bytes)]), `tma2mma, announced: ${RUNS[name]}`));
    async function change(value) {
      name = value;
      run = await lib.recording(name);
      list = lib.barrier(run, "tma2mma", 0);
      steps.go(0);
      table.again();
    }
    run = await lib.recording(name);
    const controls = el("div", { class: "figure-controls" }, lib.choice("announced", Object.entries(RUNS), name, change), steps);
    lib.frame(root, "bytes announced, bytes that come", [controls, picture, steps.says, table], steps);
    await change(name);
    steps.go(1, true);
  });
})();
