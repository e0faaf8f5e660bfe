// The data that crosses knap's border: options in, results out. Plain values only; no ggml types.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace knap {

using Token = std::int32_t;

// Bad input from outside (a file, a flag, a request). The text says what was expected, what was
// found, and where.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

enum class CacheType { f32, f16, q8_0 };

// Whether weights are copied at load into the layouts that faster kernels want, ours or ggml's.
// `automatic` does so only for types that stay invariant to the number of rows in a batch.
enum class Repack { automatic, on, off };

// Which operators compute on the CPU: knap's own kernels where they exist and win, or ggml's alone.
enum class Kernels { automatic, ggml };

// Whether ggml's flash attention computes: `automatic` where it is the fastest there is, on GPUs
// and workers. It sums in half precision, and in another order for other numbers of rows.
enum class FlashAttention { automatic, on, off };

// How an engine runs: fixed for its lifetime.
struct RuntimeConfig {
    std::filesystem::path model_path{};
    std::filesystem::path adapter_path{};  // for the strategy kangaroo; empty: none
    int n_ctx = 0;      // context in tokens; 0: the model's own, at most kDefaultMaxContext
    int n_threads = 0;  // 0: the physical cores that this process may use
    // What computes: names of devices(), separated by commas, that share the layers in this order;
    // empty: the workers, or the first GPU, or the CPU where there is none.
    std::string device{};
    // Layers that other devices than the CPU compute: the last ones, with the head. -1: all.
    int n_gpu_layers = -1;
    // Programs on other machines (`knap worker`) that lend their devices: "host:port".
    std::vector<std::string> workers{};
    // A worker that leaves a call without an answer for so many seconds is lost, and the process
    // ends; 0: it is waited for without end. One pass, or one tensor sent, may take that long.
    int worker_timeout_s = 300;
    int n_ubatch = 512;  // most rows of one forward pass, up to kMaxUbatch
    CacheType cache_type_k = CacheType::f16;
    CacheType cache_type_v = CacheType::f16;
    FlashAttention flash_attention = FlashAttention::automatic;
    // Verifications keep to as many rows as have the bits of plain decoding, where more than one
    // do. Without, they take as many as pay, and rounding may decide near-ties otherwise.
    bool exact = true;
    Repack repack = Repack::automatic;
    Kernels kernels = Kernels::automatic;
    // What is known of costs and good plans (`knap profile`): "auto", what was saved for this model
    // and machine; "none"; or the path of a profile.
    std::string profile = "auto";
    std::function<void(double fraction)> on_load_progress{};  // may be empty
};

inline constexpr int kDefaultMaxContext = 8192;
inline constexpr int kMaxUbatch = 2048;
inline constexpr int kMaxWorkerTimeoutSeconds = 24 * 3600;

// Something that can compute a model.
struct DeviceInfo {
    std::string name;         // "CUDA0", "CPU"
    std::string description;  // "NVIDIA H200"
    bool is_cpu = false;
    std::int64_t memory_bytes = 0;
    std::int64_t free_bytes = 0;
};

// How one token is chosen from logits. Applied in this order: logit bias, penalties (repetition,
// frequency, presence), temperature, top-k, top-p, min-p; then a draw whose noise depends on seed,
// position and token alone.
struct SamplingOptions {
    float temperature = 0.0f;  // 0: greedy (the lowest id wins a tie)
    int top_k = 40;            // 0: off
    float top_p = 0.95f;       // 1: off
    float min_p = 0.05f;       // 0: off
    float repeat_penalty = 1.0f;
    float presence_penalty = 0.0f;
    float frequency_penalty = 0.0f;
    int repeat_last_n = 64;  // tokens under penalty; 0: none, -1: the whole context
    std::uint64_t seed = 0;
    // Added to the logits; -infinity forbids a token.
    std::vector<std::pair<Token, float>> logit_bias{};

    bool operator==(const SamplingOptions&) const = default;
};

// How a drafted token is held against the whole model when sampling; greedy decoding has one rule.
// `shared_noise` and `equality` give the text of plain sampling with the same seed; `ratio` gives
// another text of the same distribution, and accepts a little more.
enum class AcceptanceRule { shared_noise, ratio, equality };

// How to draft. Whatever is chosen, the text is that of plain decoding (see AcceptanceRule).
struct SpeculationOptions {
    std::string strategy = "knapspec";  // a name of strategies()
    int draft_max = 0;  // most tokens drafted in a row, up to kMaxDraft; 0: the strategy's own
    // `static` and others that draft with a given plan: its modules, as in "a=w16+256,m3-5=skip".
    std::string draft_plan{};
    // The same from a file of `knap search`, with its draft_max where none is given.
    std::filesystem::path plan_file{};
    int draft_width = 1;        // of such strategies: candidates per position, up to kMaxDraftWidth
    float exit_confidence = 0;  // drafting stops after a token less probable than this; 0: never
    std::string strategy_options{};  // the strategy's own settings: "KEY=VALUE,KEY=VALUE"
    AcceptanceRule acceptance = AcceptanceRule::shared_noise;
    // Below 0: off. Otherwise a projection for measuring costs: drafts are kept by a seeded coin of
    // this rate, and the text means nothing.
    double assume_acceptance = -1;

    bool operator==(const SpeculationOptions&) const = default;
};

// One pass of the whole model per token: what every other way of drafting is held against.
inline SpeculationOptions plain_decoding() {
    return {.strategy = "autoregressive"};
}

inline constexpr int kMaxDraft = 64;
inline constexpr int kMaxDraftWidth = 16;

// What is wanted of one request.
struct GenerateOptions {
    int n_predict = -1;  // most tokens to generate; -1: until the text ends or the context is full
    // Written out because GCC 12 warns of `{}`, falsely, wherever a request is filled in place.
    SamplingOptions sampling = SamplingOptions();
    SpeculationOptions speculation{};
    std::vector<std::string> stop{};  // generation ends before any of these strings appears
    bool ignore_eos = false;          // end-of-generation tokens are never chosen
};

// Where a token came from.
enum class TokenOrigin {
    plain,      // a round that drafted nothing
    accepted,   // drafted, and kept
    corrected,  // the whole model's own, where a draft was wrong
    bonus,      // the whole model's own, after a draft that was kept to its end
};

// What a request reports while it runs. Every member may be empty. All are called on the caller's
// thread.
struct Observer {
    // Whole UTF-8 characters, stop strings withheld.
    std::function<void(std::string_view text)> on_text{};
    // Called for each token before its text.
    std::function<void(TokenOrigin origin)> on_token{};
    std::function<void(int done, int total)> on_prefill{};
    // Polled between tokens and inside long passes: true ends the request with
    // StopReason::cancelled. It may be called from the compute thread, so it should only read a
    // flag.
    std::function<bool()> is_cancelled{};
};

enum class StopReason { eos, length, stop, context, cancelled };
std::string_view to_string(StopReason reason);  // "eos", "length", "stop", "context", "cancelled"

struct Timings {
    double load_ms = 0;
    double prefill_ms = 0;
    double decode_ms = 0;
    double compute_ms = 0;                 // of decode_ms: inside the backend
    double host_ms = 0;                    // of decode_ms: everything else
    double draft_ms = 0;                   // of decode_ms: drafting
    double verify_ms = 0;                  // of decode_ms: the whole model's passes
    double search_ms = 0;                  // of decode_ms: the strategy's own thinking
    double other_ms = 0;                   // of decode_ms: acceptance, text, bookkeeping
    double tokens_per_second = 0;          // generated tokens per second of decode_ms
    double prefill_tokens_per_second = 0;  // computed prompt tokens per second of prefill_ms
    double bandwidth_gb_per_second = 0;    // weight and cache bytes read by decoding, per second
};

// A place where the whole model hardly preferred its choice to the second one.
struct NearTie {
    int position = 0;  // of the token, counted from the start of the conversation
    float gap = 0;     // in logits, below kNearTieGap
};

// Passes of other shapes round differently: what that may move logits by, with room.
inline constexpr float kNearTieGap = 0.5f;

struct SpeculationStatistics {
    int rounds = 0;        // passes of the whole model after the prompt's
    int n_drafted = 0;     // tokens of the drafts' longest paths
    int n_tree_nodes = 0;  // tokens drafted, siblings included
    int n_accepted = 0;
    double acceptance_rate = 0;       // n_accepted / n_drafted
    double mean_accepted_length = 0;  // tokens emitted per round
    // [i]: of the drafts that were i + 1 tokens long or longer, the share with that token kept.
    std::vector<double> acceptance_by_position;
    // Where rounding may have led to another token than plain decoding's: only when the passes
    // are not row invariant. (Tokens at the edge of a cut by top-k, top-p or min-p may come and go
    // by rounding as well; those are not listed.)
    std::vector<NearTie> near_ties;
    // Whether every pass of the whole model gave the bits that passes of one row give.
    bool row_invariant = true;
    bool is_projection = false;  // agreement was assumed: see assume_acceptance
};

// A choice that a strategy made while it ran, and what became of it.
struct Decision {
    int token = 0;         // tokens of the answer when it was made
    std::string way{};     // how tokens are drafted from then on, in words
    std::string plan{};    // the modules to draft with, as in "a=w16+256"; empty: with none
    std::string reason{};  // in words
    // Speed over plain decoding that was expected of it; 0: nothing was.
    double predicted = 0;
    double measured = 0;  // what it came to until the next decision; 0: not measured
};

struct GraphStatistics {
    std::int64_t built = 0;
    std::int64_t reused = 0;
    std::int64_t evicted = 0;
};

struct MemoryStatistics {
    std::int64_t weights_bytes = 0;
    std::int64_t cache_bytes = 0;
    std::int64_t scratch_bytes = 0;
    std::int64_t peak_rss_bytes = 0;
};

// One request's outcome.
// Graphs that CUDA devices launch as one, in this process so far: captured when a pass came again
// as it was, given up when it changed. Zeros without CUDA.
struct CudaGraphStatistics {
    std::int64_t captured = 0;
    std::int64_t reset = 0;
};

struct Result {
    std::string text;
    std::vector<Token> tokens;  // generated ids; an end-of-generation id is not among them
    StopReason stop = StopReason::length;
    std::string strategy = "autoregressive";
    int n_prompt = 0;
    int n_prompt_reused = 0;  // of n_prompt: rows that were in the cache already
    int n_generated = 0;
    Timings timings;
    SpeculationStatistics speculation;
    std::vector<Decision> decisions;  // of a strategy that makes any, in their order
    GraphStatistics graphs;
    CudaGraphStatistics cuda_graphs;
    std::int64_t allocations_after_warmup = 0;  // times that memory was reserved for passes
    MemoryStatistics memory;
    std::string device;          // "CPU", "CUDA0"
    std::string attention_path;  // "kernel", "folded" or "flash"
    std::string repack;          // "off", or which types ggml has repacked: "Q4_0"
    std::string products;        // "ggml", or which types our kernels take: "avx512 Q4_1,Q8_0"
    std::uint64_t seed = 0;
};

// What an adapter is; RuntimeConfig::adapter_path.
struct AdapterInfo {
    std::string path;
    int exit_layer = 0;  // layers of the model that come before it
    int n_heads = 0;
    std::int64_t n_parameters = 0;
};

// What a model is, as `knap info` shows it.
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
    std::int64_t weight_bytes_per_token = 0;         // weight bytes that decoding one token reads
    std::int64_t cache_bytes_per_token = 0;          // with the configured cache types
    std::vector<std::pair<std::string, int>> types;  // tensor type -> number of tensors, most first
    std::string chat_template;                       // name that libllama gives it, or empty
    std::string rope;                                // "norm" or "neox", with scaling
    std::optional<AdapterInfo> adapter{};
};

// A setting of a strategy (SpeculationOptions::strategy_options), as help texts list it.
struct StrategyOptionInfo {
    std::string_view key;
    std::string_view values;  // that it takes, the default first: "code|paper|7..1000"
    std::string_view help;
};

// A way of drafting, as help texts list it.
struct StrategyInfo {
    std::string_view name;
    std::string_view summary;
    std::span<const StrategyOptionInfo> options{};
    bool needs_adapter = false;  // RuntimeConfig::adapter_path
    int min_layers = 1;          // of a model that it can draft with, its options as they are
};

struct ChatMessage {
    std::string role;  // "system", "user" or "assistant"
    std::string content;
};

}  // namespace knap
