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
})();
