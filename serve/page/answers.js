// Answers under way: reads their chunks into messages, and measures.
import { streamChat } from "./api.js";
import { requestBody } from "./settings.js";
import { TokenMap } from "./tokens.js";

// A message for the answer to come.
export function newAnswer(settings) {
  return { role: "assistant", content: "", reasoning: "", pieces: [], settings };
}

// Fills `answer`, calling `changed()` after every chunk. Throws what the server or the user
// (`signal`) ends it with; the text so far stays.
export async function fill(answer, messages, signal, changed) {
  const map = new TokenMap();
  const pace = new PlainPace();
  let nRounds = 0;
  for await (const chunk of streamChat(requestBody(messages, answer.settings), signal)) {
    const choice = chunk.choices[0];
    answer.content += choice?.delta.content || "";
    answer.reasoning += choice?.delta.reasoning_content || "";
    if (chunk.knap?.tokens) {
      ++nRounds;
      if (!choice?.delta.reasoning_content) {
        map.add(chunk.knap, answer.content);
        answer.pieces = map.pieces;
      }
    }
    if (choice?.finish_reason) {
      answer.finish = choice.finish_reason;
    }
    if (chunk.usage) {
      readEnd(answer, chunk);
    } else if (chunk.timings) {
      answer.figures = figures(chunk.timings, nRounds);
      pace.add(chunk.timings.predicted_ms, chunk.knap);
    }
    if (answer.figures) {
      answer.figures.gain = pace.gain(answer.figures);
    }
    changed();
  }
}

// How long plain decoding would take, from the rounds of the same answer that drafted nothing.
export class PlainPace {
  constructor() {
    this.end = 0;  // of the last round, in ms after the first token
    this.times = [];
  }

  // `round` is a chunk's `knap`, which ended at `end`.
  add(end, round) {
    if (end > this.end && round?.n_drafted === 0) {
      this.times.push(end - this.end);
    }
    this.end = end;
  }

  // Over plain decoding; undefined while there are too few rounds to tell, or nothing was drafted.
  gain({ nTokens, ms, nDrafted }) {
    if (this.times.length < 5 || nDrafted === 0 || !(ms > 0)) {
      return undefined;
    }
    const plain = this.times.toSorted((a, b) => a - b)[this.times.length >> 1];
    return (nTokens - 1) * plain / ms;
  }
}

function figures(timings, nPasses) {
  return {
    nTokens: timings.predicted_n,
    nPasses,
    ms: timings.predicted_ms,
    perSecond: timings.predicted_per_second,
    nDrafted: timings.draft_n || 0,
    nAccepted: timings.draft_n_accepted || 0,
  };
}

function readEnd(answer, chunk) {
  // The pass over the prompt gives the first token.
  answer.figures = figures(chunk.timings, chunk.knap.rounds + 1);
  answer.figures.strategy = chunk.knap.strategy;
  answer.decisions = chunk.knap.decisions || [];
}

// Makes the answer again without drafts, from the same seed, and returns what that says:
// {isSame, gain, perSecond}. Lossless strategies give the same text.
export async function compareWithPlain(answer, messages, signal) {
  const plain = newAnswer({ ...answer.settings, strategy: "autoregressive" });
  await fill(plain, messages, signal, () => {});
  return {
    isSame: plain.content === answer.content && plain.reasoning === answer.reasoning,
    gain: plain.figures.ms / answer.figures.ms,
    perSecond: plain.figures.perSecond,
  };
}

const plural = (n, word, words) => `${n} ${n === 1 ? word : words}`;

// "128 tokens in 54 passes, 61.2 tokens/s, 71 % of the drafted tokens accepted, about 1.5 × plain decoding"
export function figuresText({ nTokens, nPasses, perSecond, nDrafted, nAccepted, gain, strategy }) {
  const parts = [
    `${plural(nTokens, "token", "tokens")} in ${plural(nPasses, "pass", "passes")}`,
    `${perSecond.toFixed(1)} tokens/s`,
    nDrafted > 0
      ? `${Math.round(100 * nAccepted / nDrafted)} % of the drafted tokens accepted`
      : "nothing drafted",
    gain && `about ${gain.toFixed(1)} × plain decoding`,
    strategy,
  ];
  return parts.filter(Boolean).join(", ");
}

export function comparisonText({ isSame, gain, perSecond }) {
  const speed = `${gain.toFixed(2)} times the speed of plain decoding (${perSecond.toFixed(1)} tokens/s)`;
  return isSame ? `${speed}, same text` : `${speed}, but another text`;
}
