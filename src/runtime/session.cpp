#include <algorithm>
#include <limits>
#include <utility>

#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "decode/advance.h"
#include "graph/attention.h"
#include "graph/forward.h"
#include "kv/kv_cache.h"
#include "model/fingerprint.h"
#include "runtime/answer_text.h"
#include "runtime/engine_impl.h"
#include "runtime/prompt_cache.h"
#include "sampling/sampler.h"

namespace knap {
namespace {

// Rows above the context for what a round drafts, so that a nearly full context still speculates.
constexpr int kScratchRows = 256;
constexpr int kRowStep = 256;  // a whole number of context buckets

KvCacheOptions cache_options(const ModelConfig& model, const RuntimeConfig& config) {
    return {
        .capacity = (config.n_ctx + kScratchRows + kRowStep - 1) / kRowStep * kRowStep,
        .type_k = config.cache_type_k,
        .type_v = config.cache_type_v,
        .layout = layout_for(choose_attention(model, config)),
    };
}

std::int64_t peak_rss_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{usage.ru_maxrss} * 1024;
}

// Lends the caller's wish to cancel to the backend for the length of one request.
class CancelScope {
  public:
    CancelScope(Backend& backend, const std::function<bool()>& is_cancelled) : backend_(backend) {
        backend_.set_abort(is_cancelled);
    }
    ~CancelScope() { backend_.set_abort({}); }
    CancelScope(const CancelScope&) = delete;
    CancelScope& operator=(const CancelScope&) = delete;

  private:
    Backend& backend_;
};

SamplingOptions effective_sampling(const GenerateOptions& options, const Tokenizer& tokenizer) {
    SamplingOptions sampling = options.sampling;
    if (options.ignore_eos) {
        for (const Token token : tokenizer.end_of_generation()) {
            sampling.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
        }
    }
    return sampling;
}

}  // namespace

struct Session::Impl {
    explicit Impl(Engine::Impl& owner)
        : engine(owner),
          cache(engine.model, engine.backend, cache_options(engine.model, engine.config)),
          forward(engine.model, *engine.weights, engine.backend, cache, engine.config.n_ubatch) {}

    void check_prompt(std::span<const Token> prompt) const;
    int keep_common_beginning(std::span<const Token> prompt);
    Result generate(std::span<const Token> prompt,
                    const GenerateOptions& options,
                    const Observer& observer);

    Engine::Impl& engine;
    KvCache cache;
    Forward forward;
    std::vector<Token> history;  // rows [0, cache.committed()) are those of its first tokens
    std::size_t n_prompt = 0;    // of the latest request: what a prompt cache saves
};

namespace {

// One request under way: what decoding adds to the result, token by token.
class Generation {
  public:
    Generation(Session::Impl& session, const GenerateOptions& options, const Observer& observer)
        : session_(session),
          options_(options),
          tokenizer_(*session.engine.tokenizer),
          sampler_(effective_sampling(options, tokenizer_),
                   session.engine.model.n_vocab,
                   session.engine.config.n_ctx),
          answer_(options.stop, observer.on_text),
          observer_(observer) {}

    Result run(int n_reused);

  private:
    using Logits = std::optional<std::span<const float>>;

    Logits prefill(int n_reused);
    void decode(Logits logits);
    // Takes the next token; nullopt to go on, else why the text ends.
    std::optional<StopReason> take_token(std::span<const float> logits);
    void report_memory();
    bool is_cancelled() const { return observer_.is_cancelled && observer_.is_cancelled(); }
    int n_generated() const { return static_cast<int>(result_.tokens.size()); }

    Session::Impl& session_;
    const GenerateOptions& options_;
    const Tokenizer& tokenizer_;
    Sampler sampler_;
    AnswerText answer_;
    const Observer& observer_;
    Result result_;
};

Generation::Logits Generation::prefill(int n_reused) {
    const Stopwatch watch;
    const int n_prompt = static_cast<int>(session_.history.size());
    const Logits logits =
        advance(session_.forward, session_.cache, session_.history, [&](int n_rows) {
            if (observer_.on_prefill) {
                observer_.on_prefill(n_rows, n_prompt);
            }
        });
    result_.n_prompt = n_prompt;
    result_.n_prompt_reused = n_reused;
    result_.timings.prefill_ms = watch.elapsed_ms();
    result_.timings.prefill_tokens_per_second =
        1000.0 * (session_.cache.committed() - n_reused) / result_.timings.prefill_ms;
    return logits;
}

std::optional<StopReason> Generation::take_token(std::span<const float> logits) {
    if (options_.n_predict >= 0 && n_generated() >= options_.n_predict) {
        return StopReason::length;
    }
    std::vector<Token>& history = session_.history;
    if (static_cast<int>(history.size()) >= session_.engine.config.n_ctx) {
        return StopReason::context;
    }
    const Token token = sampler_.sample(logits, static_cast<std::int64_t>(history.size()));
    if (tokenizer_.is_end_of_generation(token)) {
        return StopReason::eos;
    }
    sampler_.accept(token);
    history.push_back(token);
    result_.tokens.push_back(token);
    if (answer_.push(tokenizer_.piece(token))) {
        return StopReason::stop;
    }
    return options_.n_predict >= 0 && n_generated() >= options_.n_predict
               ? std::optional(StopReason::length)
               : std::nullopt;
}

void Generation::decode(Logits logits) {
    const Stopwatch watch;
    const double compute_before = session_.forward.statistics().compute_ms;
    const auto weight_bytes =
        static_cast<double>(session_.engine.weights->statistics().per_token_bytes);
    const auto row_bytes = static_cast<double>(session_.cache.bytes_per_row());
    std::int64_t n_passes = 0;
    std::int64_t reservations_when_warm = session_.forward.statistics().reservations;
    double bytes_read = 0;
    for (;;) {
        if (!logits || is_cancelled()) {
            result_.stop = StopReason::cancelled;
            break;
        }
        if (const auto reason = take_token(*logits)) {
            result_.stop = *reason;
            break;
        }
        logits = advance(session_.forward, session_.cache, session_.history);
        bytes_read += weight_bytes + row_bytes * session_.cache.committed();
        if (++n_passes == 1) {
            reservations_when_warm = session_.forward.statistics().reservations;
        }
    }
    Timings& timings = result_.timings;
    timings.decode_ms = watch.elapsed_ms();
    timings.compute_ms = session_.forward.statistics().compute_ms - compute_before;
    timings.host_ms = timings.decode_ms - timings.compute_ms;
    if (n_passes > 0) {
        timings.tokens_per_second = 1000.0 * static_cast<double>(n_passes) / timings.decode_ms;
        timings.bandwidth_gb_per_second = bytes_read / timings.decode_ms * 1e-6;
    }
    result_.allocations_after_warmup =
        session_.forward.statistics().reservations - reservations_when_warm;
}

void Generation::report_memory() {
    const ForwardStatistics& statistics = session_.forward.statistics();
    const Engine::Impl& engine = session_.engine;
    result_.graphs = statistics.graphs;
    result_.memory = {
        .weights_bytes = engine.weights->statistics().total_bytes,
        .cache_bytes = static_cast<std::int64_t>(session_.cache.bytes()),
        .scratch_bytes = static_cast<std::int64_t>(statistics.scratch_bytes),
        .peak_rss_bytes = peak_rss_bytes(),
    };
    result_.attention_path = to_string(path_for(session_.cache.options().layout));
    result_.repack = engine.weights->statistics().repacked_types;
}

Result Generation::run(int n_reused) {
    const CancelScope cancel(session_.engine.backend, observer_.is_cancelled);
    for (const Token token : session_.history) {
        sampler_.accept(token);
    }
    decode(prefill(n_reused));
    answer_.finish();
    result_.text = answer_.text();
    result_.n_generated = n_generated();
    result_.timings.load_ms = session_.engine.load_ms;
    result_.seed = options_.sampling.seed;
    report_memory();
    return std::move(result_);
}

}  // namespace

void Session::Impl::check_prompt(std::span<const Token> prompt) const {
    if (prompt.empty()) {
        fail("prompt: expected at least one token, found none");
    }
    if (prompt.size() > static_cast<std::size_t>(engine.config.n_ctx)) {
        fail("prompt: expected at most ", engine.config.n_ctx, " tokens (the context, -c), found ",
             prompt.size());
    }
    const auto bad = std::find_if(prompt.begin(), prompt.end(), [&](Token token) {
        return token < 0 || token >= engine.model.n_vocab;
    });
    if (bad != prompt.end()) {
        fail("prompt: expected token ids below ", engine.model.n_vocab, ", found ", *bad,
             " at position ", bad - prompt.begin());
    }
}

// Keeps the rows that `prompt` shares with the history, all but those of its last token: that one
// is computed again, because its logits are wanted.
int Session::Impl::keep_common_beginning(std::span<const Token> prompt) {
    const auto cached = std::span(history).first(static_cast<std::size_t>(cache.committed()));
    const auto common =
        std::mismatch(cached.begin(), cached.end(), prompt.begin(), prompt.end() - 1).first;
    const int n_common = static_cast<int>(common - cached.begin());
    cache.truncate(n_common);
    history.assign(prompt.begin(), prompt.end());
    n_prompt = prompt.size();
    return n_common;
}

Result Session::Impl::generate(std::span<const Token> prompt,
                               const GenerateOptions& options,
                               const Observer& observer) {
    check_prompt(prompt);
    Generation generation(*this, options,
                          observer);  // checks the options, before the history changes
    history.reserve(static_cast<std::size_t>(engine.config.n_ctx));
    return generation.run(keep_common_beginning(prompt));
}

Session::Session(Engine& engine) : impl_(std::make_unique<Impl>(engine.impl())) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Result Session::generate(std::span<const Token> prompt,
                         const GenerateOptions& options,
                         const Observer& observer) {
    return impl_->generate(prompt, options, observer);
}

std::span<const Token> Session::history() const {
    return impl_->history;
}

void Session::reset() {
    impl_->cache.truncate(0);
    impl_->history.clear();
    impl_->n_prompt = 0;
}

void Session::save_prompt_cache(const std::filesystem::path& path) const {
    const std::size_t n_rows =
        std::min(impl_->n_prompt, static_cast<std::size_t>(impl_->cache.committed()));
    write_prompt_cache(path, fingerprint(impl_->engine.file), impl_->engine.model.n_layers,
                       std::span(impl_->history).first(n_rows), impl_->cache);
}

void Session::load_prompt_cache(const std::filesystem::path& path) {
    impl_->history =
        read_prompt_cache(path, fingerprint(impl_->engine.file), impl_->engine.model.n_layers,
                          impl_->engine.config.n_ctx, impl_->cache);
    impl_->n_prompt = impl_->history.size();
}

}  // namespace knap
