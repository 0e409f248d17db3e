// Reads what the emulator recorded (harness/src/recording.rs): events with names in place of numbers.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const known = new Map();

  function decode(raw) {
    const events = raw.events.map(([lane, start, cycles, asked, by, name, category, pairs], n) => {
      const details = {};
      for (let i = 0; i < pairs.length; i += 2) details[raw.texts[pairs[i]]] = raw.texts[pairs[i + 1]];
      return {
        n, lane, start, end: start + cycles, cycles, asked, by, details,
        name: raw.texts[name], category: raw.texts[category], cta: raw.lanes[lane].cta, laneName: raw.lanes[lane].name,
      };
    });
    return Object.assign({}, raw, { events });
  }

  lib.recording = async function (name) {
    if (!known.has(name)) known.set(name, decode(await lib.data(name)));
    return known.get(name);
  };

  // `"128 from 64"` as `[64, 128]`: the first, and how many.
  lib.span = function (words) {
    const found = /^(\d+) from (\d+)$/.exec(words || "");
    return found ? [Number(found[2]), Number(found[1])] : null;
  };

  lib.cycles = (n) => `${n} cycle${n === 1 ? "" : "s"}`;

  // What is said of an event.
  lib.describe = function (recording, event) {
    const many = recording.ctas[0] > 1 ? `CTA ${event.cta}, ` : "";
    const hidden = new Set(["ptx", "source"]);
    const more = Object.entries(event.details).filter(([key]) => !hidden.has(key)).map(([key, value]) => `${key}: ${value}`);
    const by = event.by === null || event.by === undefined ? "" : `, asked for by ${recording.lanes[event.by].name} in cycle ${event.asked}`;
    return `${many}${event.laneName}: ${event.name}, from cycle ${event.start}, ${lib.cycles(event.cycles)}${by}. ${more.join("; ")}`.trim();
  };

  const STEP = /^step(\d\d)$/;
  lib.nameOf = (name) => {
    const step = STEP.exec(name);
    return step ? `step ${Number(step[1])}` : name.replaceAll("_", " ");
  };

  // Everything that changes an mbarrier of a CTA, or asks for it, in its order; and how it stands behind each.
  lib.barrier = function (recording, name, cta) {
    const mine = `${name} of CTA ${cta}`;
    const many = recording.ctas[0] > 1;
    const who = (event) => `${event.laneName}${many ? ` of CTA ${event.cta}` : ""}`;
    const list = [];
    for (const event of recording.events) {
      const here = event.cta === cta;
      const { details } = event;
      if (here && event.name === `init ${name}`) list.push({ at: event.start, rank: 0, kind: "init", count: Number(details.arrivals), words: `${who(event)} makes it for ${details.arrivals} arrival${details.arrivals === "1" ? "" : "s"} a phase` });
      if (here && (event.name === `arrive ${name}` || event.name === `expect ${name}`)) {
        const count = Number(details.arrivals || 0);
        const bytes = Number(details["bytes announced"] || 0);
        const arrives = count === 0 ? "" : count === 1 ? "arrives" : `arrives ${count} times`;
        const by = event.laneName === "tensor core" ? "the tensor core, for a commit," : who(event);
        list.push({ at: event.start, rank: 1, kind: "arrive", count, bytes, words: `${by} ${[arrives, bytes ? `announces ${bytes} bytes` : ""].filter(Boolean).join(" and ")}` });
      }
      if (event.category === "copy" && (details.mbarriers || "").split(", ").includes(mine)) {
        list.push({ at: event.end, rank: 2, kind: "bytes", bytes: Number(details.bytes), words: `${details.bytes} bytes of ${details.shared} have come${many ? `, by the TMA engine of CTA ${event.cta}` : ""}` });
      }
      if (here && event.name === `wait ${name}`) {
        const fresh = !/^\d+$/.test(details.phase);
        const passes = fresh ? "at once, on a fresh mbarrier" : `phase ${details.phase} is complete`;
        list.push({ at: event.start, rank: 3, kind: "ask", parity: Number(details.parity), who: [who(event)], key: "" });
        list.push({ at: event.end, rank: 4, kind: "pass", parity: Number(details.parity), who: [who(event)], key: passes });
      }
    }
    list.sort((a, b) => a.at - b.at || a.rank - b.rank);
    // Warps that do the same at nearly the same time are one step.
    const steps = [];
    for (const step of list) {
      const before = steps[steps.length - 1];
      if (before && step.who && before.kind === step.kind && before.parity === step.parity && before.key === step.key && step.at - before.at < 40) before.who.push(...step.who);
      else steps.push(step);
    }
    for (const step of steps.filter((one) => one.who)) {
      const many = step.who.length > 1;
      const name = many ? `${step.who.length} warps` : step.who[0];
      step.words = step.kind === "ask" ? `${name} ask${many ? "" : "s"} for parity ${step.parity}` : `the wait${many ? "s" : ""} of ${name} for parity ${step.parity} pass${many ? "" : "es"}: ${step.key}`;
    }
    const state = { phase: 0, expected: 0, pending: 0, bytes: 0 };
    for (const step of steps) {
      if (step.kind === "init") Object.assign(state, { phase: 0, expected: step.count, pending: step.count, bytes: 0 });
      if (step.kind === "arrive") { state.pending -= step.count; state.bytes += step.bytes; }
      if (step.kind === "bytes") state.bytes -= step.bytes;
      const complete = state.expected > 0 && state.pending === 0 && state.bytes === 0 && (step.kind === "arrive" || step.kind === "bytes");
      step.before = { ...state };
      if (complete) { state.phase += 1; state.pending = state.expected; }
      step.state = { ...state, complete };
    }
    return steps;
  };

  // Names of all mbarriers of a run.
  lib.barriers = (recording) => recording.regions.filter((region) => region.kind === "barrier").map((region) => region.name);
})();
