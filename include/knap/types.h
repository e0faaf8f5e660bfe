// The data that crosses knap's border: options in, results out. Plain values only; no ggml types.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

// Whether weights are copied at load into the layouts that ggml's faster kernels want.
// `automatic` does so only for types that stay invariant to the number of rows in a batch.
enum class Repack { automatic, on, off };

// Which operators compute on the CPU: knap's own kernels where they exist and win, or ggml's alone.
enum class Kernels { automatic, ggml };

// How an engine runs: fixed for its lifetime.
struct RuntimeConfig {
    std::filesystem::path model_path{};
    int n_ctx = 0;       // context in tokens; 0: the model's own, at most kDefaultMaxContext
    int n_threads = 0;   // 0: the physical cores that this process may use
    int n_ubatch = 512;  // most rows of one forward pass, up to kMaxUbatch
    CacheType cache_type_k = CacheType::f16;
    CacheType cache_type_v = CacheType::f16;
    bool flash_attention = false;  // outside the promise of row invariance
    Repack repack = Repack::automatic;
    Kernels kernels = Kernels::automatic;
    std::function<void(double fraction)> on_load_progress{};  // may be empty
};

inline constexpr int kDefaultMaxContext = 8192;
inline constexpr int kMaxUbatch = 2048;

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
};

// What is wanted of one request.
struct GenerateOptions {
    int n_predict = -1;  // most tokens to generate; -1: until the text ends or the context is full
    SamplingOptions sampling{};
    std::vector<std::string> stop{};  // generation ends before any of these strings appears
    bool ignore_eos = false;          // end-of-generation tokens are never chosen
};

// What a request reports while it runs. Every member may be empty. All are called on the caller's
// thread.
struct Observer {
    // Whole UTF-8 characters, stop strings withheld.
    std::function<void(std::string_view text)> on_text{};
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
    double tokens_per_second = 0;          // generated tokens per second of decode_ms
    double prefill_tokens_per_second = 0;  // computed prompt tokens per second of prefill_ms
    double bandwidth_gb_per_second = 0;    // weight and cache bytes read by decoding, per second
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
struct Result {
    std::string text;
    std::vector<Token> tokens;  // generated ids; an end-of-generation id is not among them
    StopReason stop = StopReason::length;
    std::string strategy = "autoregressive";
    int n_prompt = 0;
    int n_prompt_reused = 0;  // of n_prompt: rows that were in the cache already
    int n_generated = 0;
    Timings timings;
    GraphStatistics graphs;
    std::int64_t allocations_after_warmup = 0;  // times that memory was reserved for passes
    MemoryStatistics memory;
    std::string attention_path;  // "kernel", "folded" or "flash"
    std::string repack;          // "off", or which types were repacked: "Q4_0"
    std::uint64_t seed = 0;
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
};

struct ChatMessage {
    std::string role;  // "system", "user" or "assistant"
    std::string content;
};

}  // namespace knap
