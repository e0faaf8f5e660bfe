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
    }
    changed();
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

// "128 tokens in 54 passes, 61.2 tokens/s, 71 % of the drafted tokens accepted"
export function figuresText({ nTokens, nPasses, perSecond, nDrafted, nAccepted, strategy }) {
  const parts = [
    `${plural(nTokens, "token", "tokens")} in ${plural(nPasses, "pass", "passes")}`,
    `${perSecond.toFixed(1)} tokens/s`,
    nDrafted > 0
      ? `${Math.round(100 * nAccepted / nDrafted)} % of the drafted tokens accepted`
      : "nothing drafted",
  ];
  return (strategy ? [...parts, strategy] : parts).join(", ");
}

export function comparisonText({ isSame, gain, perSecond }) {
  const speed = `${gain.toFixed(2)} times the speed of plain decoding (${perSecond.toFixed(1)} tokens/s)`;
  return isSame ? `${speed}, same text` : `${speed}, but another text`;
}
