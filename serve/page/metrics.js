// Reads Prometheus' text format: sums of the samples of a name, whatever their labels.

const SAMPLE = /^([A-Za-z_:][\w:]*)(?:\{.*\})? (\S+)$/;

export function parseMetrics(text) {
  const sums = new Map();
  for (const line of text.split("\n")) {
    const match = SAMPLE.exec(line);
    if (match) {
      sums.set(match[1], (sums.get(match[1]) || 0) + Number(match[2]));
    }
  }
  return name => sums.get(name) || 0;
}

// What happened between two samples {at, read} of the metrics, `at` in milliseconds.
export function between(before, now) {
  const added = name => now.read(name) - before.read(name);
  const seconds = (now.at - before.at) / 1000;
  const nDrafted = added("llamacpp:spec_decode_num_draft_tokens_total");
  return {
    tokensPerSecond: added("knap:tokens_total") / seconds,
    acceptedShare: nDrafted > 0 ? added("llamacpp:spec_decode_num_accepted_tokens_total") / nDrafted : null,
  };
}
