// The data that crosses knap's interface: options in, results out. Plain values, no ggml types.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace knap {

using Token = std::int32_t;

// Bad input: a file, an option, a request. The message says what was expected, what was found and
// where.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

enum class LogLevel { warning, info, debug };
using LogSink = std::function<void(LogLevel level, std::string_view text)>;

enum class CacheType { f32, f16, q8_0 };

// Whether weights are copied at load time into the layouts of faster kernels, ours or ggml's.
// `automatic` repacks only the types whose results stay batch-invariant.
enum class Repack { automatic, on, off };

// Operators: knap's own kernels where they exist and are faster, ggml's only, or knap's own
// wherever they exist: on NVIDIA GPUs also with 16-bit weights, where they decode faster but read
// long prompts more slowly.
enum class Kernels { automatic, ggml, own };

// Whether ggml's flash attention is used. `automatic`: on GPUs and workers, where it is fastest. On
// a CPU it sums in half precision and is not batch-invariant.
enum class FlashAttention { automatic, on, off };

// How an engine runs; fixed for its lifetime.
struct RuntimeConfig {
    std::filesystem::path model_path{};
    std::filesystem::path adapter_path{};  // for the strategy kangaroo; empty: none
    int n_ctx = 0;  // context size in tokens; 0: the model's, at most kDefaultMaxContext
    // Conversations whose contexts fit in the cache at once. More sessions may be open, and more
    // may be served: see n_cache_rows.
    int n_parallel = 1;
    // Rows of the cache for all conversations together, a row for each token; at least n_ctx.
    // 0: n_ctx * n_parallel. When rows are short, those go first that only the prefix cache holds,
    // least recently used first; then those of sessions without a request, whose next request
    // computes them again; then those of the youngest request, which waits and is computed again.
    // No text changes. Where a device cannot read pages (GPUs, workers), only whole contexts count.
    int n_cache_rows = 0;
    int n_threads = 0;  // 0: the physical cores available to this process
    // Names of devices(), which share the layers in this order. Empty: the workers if there are
    // any, else the first GPU, else the CPU.
    std::vector<std::string> devices{};
    // Layers to put on GPUs and workers: the last ones, with the head. The CPU computes the others.
    // -1: all.
    int n_gpu_layers = -1;
    // Machines that lend their devices (`knap worker`), as "host:port".
    std::vector<std::string> workers{};
    // A worker that leaves a call unanswered for this long is considered lost, and the process
    // ends. One pass, or the transfer of one tensor, must fit. 0: waits indefinitely.
    int worker_timeout_s = 300;
    // Whether sessions share the cache rows of prompts that begin alike, where rows do not depend
    // on how they are computed.
    bool prefix_cache = true;
    int n_ubatch = 512;  // most rows of one forward pass, up to kMaxUbatch
    CacheType cache_type_k = CacheType::f16;
    CacheType cache_type_v = CacheType::f16;
    FlashAttention flash_attention = FlashAttention::automatic;
    // Limits verification passes to the largest batch that is bit-identical to plain decoding,
    // where that is more than one row. Without it they may be larger, and rounding may decide near
    // ties differently.
    bool exact = true;
    Repack repack = Repack::automatic;
    Kernels kernels = Kernels::automatic;
    // Measured costs and plans (`knap profile`): "auto" uses what is saved for this model and
    // machine, "none" nothing, anything else is the path of a profile.
    std::string profile = "auto";
    // Whether to keep what is learned about drafting (acceptance, costs and plans: numbers, never
    // text) in the cache folder, and to begin with what earlier runs have learned. The text stays
    // the same.
    bool memory = false;
    std::function<void(double fraction)> on_load_progress{};  // may be empty
};

inline constexpr int kDefaultMaxContext = 8192;
inline constexpr int kMaxUbatch = 2048;
inline constexpr int kMaxParallel = 256;
inline constexpr int kMaxWorkerTimeoutSeconds = 24 * 3600;

// A device that can compute a model.
struct DeviceInfo {
    std::string name;         // "CUDA0", "CPU", "RPC0"
    std::string description;  // "NVIDIA H200"
    bool is_cpu = false;
    std::int64_t memory_bytes = 0;
    std::int64_t free_bytes = 0;
};

// How a token is chosen from logits. Applied in this order: the grammar (GenerateOptions), logit
// bias, penalties (repetition, frequency, presence), temperature, top-k, top-p, min-p, then a draw.
// The noise of the draw depends only on seed, position and token.
struct SamplingOptions {
    float temperature = 0.0f;  // 0: greedy (the lowest id wins a tie)
    int top_k = 40;            // 0: off
    float top_p = 0.95f;       // 1: off
    float min_p = 0.05f;       // 0: off
    float repeat_penalty = 1.0f;
    float presence_penalty = 0.0f;
    float frequency_penalty = 0.0f;
    int repeat_last_n = 64;  // recent tokens that are penalised; 0: none, -1: all
    std::uint64_t seed = 0;
    // Added to the logits; -infinity forbids a token.
    std::vector<std::pair<Token, float>> logit_bias{};

    bool operator==(const SamplingOptions&) const = default;
};

// When a drafted token is accepted while sampling; greedy decoding has one rule. `shared_noise` and
// `equality` give the text of plain sampling with the same seed. `ratio` gives a different text
// from the same distribution and accepts slightly more.
enum class AcceptanceRule { shared_noise, ratio, equality };

// Settings of a strategy by key, as StrategyInfo::options lists them: {{"plan", "a=w16+256"}}.
using StrategySettings = std::map<std::string, std::string, std::less<>>;
// Reads them written as "KEY=VALUE,KEY=VALUE".
StrategySettings parse_settings(std::string_view text);

// How to draft. Whatever is chosen, the text is that of plain decoding (see AcceptanceRule).
struct SpeculationOptions {
    std::string strategy = "knapspec";  // a name from strategies()
    int draft_max = 0;  // longest draft in tokens, up to kMaxDraft; 0: the strategy's default
    StrategySettings settings{};
    AcceptanceRule acceptance = AcceptanceRule::shared_noise;
    // A projection of speed: accepts each draft at random with this probability, from a seeded
    // generator, so the text is meaningless. Below 0: off.
    double assume_acceptance = -1;

    bool operator==(const SpeculationOptions&) const = default;
};

// One pass of the whole model per token: the baseline of every strategy.
inline SpeculationOptions plain_decoding() {
    return {.strategy = "autoregressive"};
}

inline constexpr int kMaxDraft = 64;
inline constexpr int kMaxDraftWidth = 16;
inline constexpr int kMaxLogprobs = 20;

// A constraint on the answer: only tokens that the grammar allows are chosen.
struct Grammar {
    std::string text{};  // GBNF, from the rule `root`; empty: no constraint
    // Lazy: the grammar applies from the first match on (llama.cpp's rules for lazy grammars). Both
    // empty: from the start.
    std::vector<std::string> trigger_patterns{};
    std::vector<Token> trigger_tokens{};
    // Thinking: the grammar applies after the first of these strings. Empty: from the start.
    std::vector<std::string> starts_after{};
    // The end of the prompt, where the grammar describes it too: to be accepted before the answer.
    std::vector<Token> prefix{};

    bool operator==(const Grammar&) const = default;
};

// One request.
struct GenerateOptions {
    int n_predict = -1;  // most tokens to generate; -1: until the text ends or the context is full
    // Spelled out because GCC 12 wrongly warns about `{}` when a request is filled in place.
    SamplingOptions sampling = SamplingOptions();
    SpeculationOptions speculation{};
    std::vector<std::string> stop{};  // generation ends before any of these strings appears
    // End-of-generation tokens are never chosen. Not with a grammar: they are all that remains at
    // its end.
    bool ignore_eos = false;
    Grammar grammar{};
    // False: every row of the prompt is computed, although the conversation or the prefix cache may
    // have it. The text is the same.
    bool reuse_prompt = true;
    // Texts that the answer may resemble, such as the file that it edits. Strategies that copy
    // drafts (lookup, cascade, knapspec) copy from them too. The answer is the same without them.
    std::vector<std::vector<Token>> references{};
    // A text that the answer is expected to be much like, from its first token on. Drafts are
    // copied from it before all others. The answer is the same without it.
    std::vector<Token> prediction{};
    // Log-probabilities in every TokenEvent: of the token, and of this many most probable tokens,
    // up to kMaxLogprobs. -1: none are computed.
    int n_logprobs = -1;
};

// Where a token came from.
enum class TokenOrigin {
    plain,      // a round without a draft
    accepted,   // drafted and accepted
    corrected,  // the whole model's choice in place of a rejected draft
    bonus,      // the whole model's choice after a draft that was accepted to its end
};

struct TokenLogprob {
    Token token = 0;
    float logprob = 0;
};

// A token of the answer, as Observer::on_token receives it; valid during the call.
//
// Log-probabilities are natural logarithms of the softmax over the whole vocabulary of the whole
// model's logits, before bias, penalties and temperature. They come from the pass that decided the
// token. So they are the same bits whatever was drafted, if passes are batch-invariant
// (SpeculationStatistics::row_invariant).
struct TokenEvent {
    Token token = 0;
    TokenOrigin origin = TokenOrigin::plain;
    int position = 0;   // from the start of the conversation
    float logprob = 0;  // of the token; 0 if GenerateOptions::n_logprobs is -1
    // The n_logprobs most probable tokens, most probable first; the lowest id wins a tie. The token
    // need not be among them.
    std::span<const TokenLogprob> top{};
};

// What drafted the tokens of a round.
enum class DraftSource {
    none,     // nothing: a step of plain decoding
    copy,     // tokens that the strategy copied from the text
    plan,     // a plan
    cascade,  // a plan that first checked a copy in one pass
    forced,   // a grammar that leaves no choice
};
std::string_view to_string(DraftSource source);  // "none", "copy", ...

// A round that is over, as Observer::on_round receives it; valid during the call. The token that
// follows the prompt counts as a round without a draft.
struct RoundEvent {
    DraftSource source = DraftSource::none;
    std::string_view plan{};  // that drafted, as in "a=w16+256"; empty: none
    int n_drafted = 0;        // tokens along the longest path of the draft
    int n_accepted = 0;
    int n_tokens = 0;  // tokens of the answer that it gave
};

// Callbacks of a running request; each may be empty. knap.h says which thread calls them. They must
// not ask a session of the same engine for anything: it may wait for the request that calls them.
struct Observer {
    // Whole UTF-8 characters; text that may be the start of a stop string is withheld.
    std::function<void(std::string_view text)> on_text{};
    // Called for each token of Result::tokens, before its text. The end-of-generation token that
    // ends an answer is not part of it.
    std::function<void(const TokenEvent& event)> on_token{};
    // Called after the tokens of a round and their text.
    std::function<void(const RoundEvent& event)> on_round{};
    // Called with the tokens of the prompt that need no computing, then after every pass over it.
    std::function<void(int done, int total)> on_prefill{};
    // Polled between tokens and during passes; true ends the request with StopReason::cancelled. It
    // should do no more than read a flag.
    std::function<bool()> is_cancelled{};
};

enum class StopReason { eos, length, stop, context, cancelled };
std::string_view to_string(StopReason reason);  // "eos", "length", "stop", "context", "cancelled"

// Where the time of a request went.
struct Timings {
    double load_ms = 0;
    double prefill_ms = 0;
    double decode_ms = 0;
    double compute_ms = 0;                 // part of decode_ms: inside the backend
    double host_ms = 0;                    // part of decode_ms: everything else
    double draft_ms = 0;                   // part of decode_ms: drafting
    double verify_ms = 0;                  // part of decode_ms: passes of the whole model
    double search_ms = 0;                  // part of decode_ms: the strategy's own work
    double other_ms = 0;                   // part of decode_ms: acceptance, text, bookkeeping
    double tokens_per_second = 0;          // generated tokens / decode_ms
    double prefill_tokens_per_second = 0;  // computed prompt tokens / prefill_ms
    double bandwidth_gb_per_second = 0;    // weight and cache bytes read while decoding / decode_ms
};

// A position at which the whole model hardly preferred its choice to the runner-up.
struct NearTie {
    int position = 0;  // of the token, from the start of the conversation
    float gap = 0;     // difference of the two logits, below kNearTieGap
};

// Gaps below this are listed as near ties. It is a fixed convention, because a request measures no
// rounding; `knap check` derives its bound from the measured rounding of the model and device.
inline constexpr float kNearTieGap = 0.5f;

// What drafts from one source achieved in a request.
struct SourceStatistics {
    int rounds = 0;     // rounds that verified such a draft
    int n_drafted = 0;  // tokens along the longest path of each draft
    int n_accepted = 0;
};

// What drafting achieved in a request.
struct SpeculationStatistics {
    int rounds = 0;        // passes of the whole model after the prompt
    int n_drafted = 0;     // tokens along the longest path of each draft
    int n_tree_nodes = 0;  // tokens drafted, siblings included
    int n_accepted = 0;
    // Part of n_accepted: drafted without a pass because the grammar allows no other text.
    int n_forced = 0;
    // By draft source. Rounds without a draft count for none.
    SourceStatistics copies{};    // tokens copied from the text
    SourceStatistics plans{};     // tokens drafted by a plan
    SourceStatistics cascades{};  // tokens drafted by a plan that first checked a copy in one pass
    double acceptance_rate = 0;   // n_accepted / n_drafted
    double mean_accepted_length = 0;  // tokens emitted per round
    // [i]: among drafts of at least i + 1 tokens, the share whose token i was accepted.
    std::vector<double> acceptance_by_position;
    // Positions where rounding may have led to another token than plain decoding's; only filled
    // when passes are not batch-invariant. Tokens at the edge of a top-k, top-p or min-p cut can
    // also change by rounding; those are not listed.
    std::vector<NearTie> near_ties;
    // Whether every pass of the whole model was bit-identical to single-row passes.
    bool row_invariant = true;
    bool is_projection = false;  // acceptance was assumed: see assume_acceptance
};

// A choice that a strategy made while it ran, and how it turned out.
struct Decision {
    int token = 0;         // length of the answer when the choice was made
    std::string source{};  // where drafts come from after it, in words
    std::string plan{};    // the plan that drafts, as in "a=w16+256"; empty: none
    std::string reason{};  // in words
    double predicted = 0;  // expected speed over plain decoding; 0: no prediction
    double measured = 0;   // the same, measured until the next decision; 0: not measured
};

// Compute graphs of a request.
struct GraphStatistics {
    std::int64_t built = 0;
    std::int64_t reused = 0;
    std::int64_t evicted = 0;
};

// Graphs that CUDA devices launch as a unit, in this process so far: captured when a pass repeats
// unchanged, reset when it changes. Zeros without CUDA.
struct CudaGraphStatistics {
    std::int64_t captured = 0;
    std::int64_t reset = 0;
};

struct MemoryStatistics {
    std::int64_t weights_bytes = 0;
    std::int64_t cache_bytes = 0;
    std::int64_t scratch_bytes = 0;
    std::int64_t peak_rss_bytes = 0;
};

// The outcome of one request.
struct Result {
    std::string text;
    std::vector<Token> tokens;  // generated ids, without an end-of-generation id
    StopReason stop = StopReason::length;
    std::string stop_string{};  // of GenerateOptions::stop, that ended the text; else empty
    std::string strategy = "autoregressive";
    int n_prompt = 0;
    int n_prompt_reused = 0;  // part of n_prompt: rows that the conversation had already
    int n_prompt_shared = 0;  // part of n_prompt: rows found in the prefix cache instead
    int n_generated = 0;
    std::int64_t n_passes = 0;      // that computed this request, drafts and searches included
    std::int64_t n_other_rows = 0;  // rows of other sessions in these passes
    Timings timings;
    SpeculationStatistics speculation;
    std::vector<Decision> decisions;  // in order; empty for strategies that make none
    GraphStatistics graphs;
    CudaGraphStatistics cuda_graphs;
    std::int64_t allocations_after_warmup = 0;  // times that memory was reserved for passes
    MemoryStatistics memory;
    std::string device;          // "CPU", "CUDA0"; several are joined by commas
    std::string attention_path;  // "kernel", "folded" or "flash"
    std::string repack;          // "off", or the types that ggml repacked: "Q4_0"
    // "ggml", or the types that our kernels take: "avx512 Q4_1,Q8_0", "cuda Q4_K,Q6_K"
    std::string products;
    std::string cuda_kernels;  // "used", or why not: "no NVIDIA GPU", "layers on several devices"
    std::uint64_t seed = 0;
};

// A loaded adapter (RuntimeConfig::adapter_path).
struct AdapterInfo {
    std::string path;
    int exit_layer = 0;  // layers of the model that run before it
    int n_heads = 0;
    std::int64_t n_parameters = 0;
};

// A loaded model, as `knap info` shows it.
struct ModelInfo {
    std::string path;
    std::string name;
    std::string architecture;
    int n_layers = 0;
    int n_embd = 0;
    int n_heads = 0;
    int n_kv_heads = 0;
    int head_dim = 0;
    int n_ff = 0;
    int n_vocab = 0;
    int n_ctx_train = 0;
    bool has_tied_head = false;
    std::int64_t n_parameters = 0;
    std::int64_t file_bytes = 0;
    std::int64_t weight_bytes_per_token = 0;  // weight bytes read to decode one token
    std::int64_t cache_bytes_per_token = 0;   // kept, with the configured cache types
    // [n_layers] The positions that attention sees at most, its own included; 0: all.
    std::vector<int> windows{};
    std::vector<std::pair<std::string, int>> types;  // tensor type and count, most frequent first
    std::string chat_template;                       // the model's own, in Jinja; empty: none
    std::string bos_token{};                         // begins a text; empty: none
    std::string eos_token{};                         // ends one
    std::string rope;                                // "norm" or "neox", with scaling
    std::string layers{};                            // what they add to a dense decoder, in words
    std::string cuda_kernels{};                      // as in Result
    std::optional<AdapterInfo> adapter{};
};

// A setting of a strategy (SpeculationOptions::settings).
struct StrategyOptionInfo {
    std::string_view key;
    std::string_view values;  // accepted values: "code|paper|7..1000"
    std::string_view help;
};

// A drafting strategy.
struct StrategyInfo {
    std::string_view name;
    std::string_view summary;
    std::span<const StrategyOptionInfo> options{};
    bool needs_adapter = false;  // RuntimeConfig::adapter_path
    int min_layers = 1;          // least number of layers it needs with default settings
};

// A function that an assistant's message calls.
struct ToolCall {
    std::string id;  // may be empty
    std::string name;
    std::string arguments;  // JSON text

    bool operator==(const ToolCall&) const = default;
};

struct ChatMessage {
    std::string role;  // "system", "developer", "user", "assistant" or "tool"
    std::string content;
    std::string reasoning{};             // of an assistant
    std::vector<ToolCall> tool_calls{};  // of an assistant
    std::string tool_call_id{};          // of a tool: the call that it answers
    std::string tool_name{};             // of a tool

    bool operator==(const ChatMessage&) const = default;
};

// A function that answers may call.
struct ChatTool {
    std::string name;
    std::string description;
    std::string parameters;  // JSON schema text; empty: none
};

// Whether answers call tools: as the model decides, never, or always.
enum class ToolChoice { automatic, none, required };

}  // namespace knap
