#include <algorithm>

#include "base/error.h"
#include "decode/knapspec/options.h"
#include "runtime/files/prompt_cache.h"
#include "runtime/generation.h"
#include "runtime/session_impl.h"

namespace knap {
namespace {

// Lets a caller cancel passes while the object lives.
class CancelScope {
  public:
    CancelScope(Forward& forward, const std::function<bool()>& is_cancelled) : forward_(forward) {
        forward_.set_cancel(&is_cancelled);
    }
    ~CancelScope() { forward_.set_cancel(nullptr); }
    CancelScope(const CancelScope&) = delete;
    CancelScope& operator=(const CancelScope&) = delete;

  private:
    Forward& forward_;
};

// Keeps no row without a token when a request ends, also by an exception of its observer.
class RowsOfText {
  public:
    explicit RowsOfText(Session::Impl& session) : session_(session) {}
    ~RowsOfText() {
        Sequence& cache = session_.cache;
        cache.truncate(std::min(cache.committed(), static_cast<int>(session_.history.size())));
    }
    RowsOfText(const RowsOfText&) = delete;
    RowsOfText& operator=(const RowsOfText&) = delete;

  private:
    Session::Impl& session_;
};

AdapterParts parts_of_adapter(Engine::Impl& engine) {
    return {.adapter = *engine.adapter,
            .devices = engine.adapter_devices,
            .capacity = engine.config.n_ctx + kScratchRows,
            .n_ubatch = engine.config.n_ubatch,
            .turns = &engine.passes()};
}

}  // namespace

Session::Impl::Impl(Engine::Impl& owner)
    : engine(owner),
      cache(engine.pipeline().memory(), engine.config.n_ctx + kScratchRows),
      pages(engine.pages(), cache),
      shares_prefixes(engine.config.prefix_cache && engine.pipeline().limits().divides_prompts),
      forward(engine.pipeline(), engine.passes(), cache),
      whole_model(engine.model.n_layers),
      known(earlier_runs(engine)),
      invariant_rows(std::min(engine.exact_rows, engine.limits().exact_rows)),
      trees_are_exact(engine.limits().has_exact_trees) {
    if (HeadSubset::is_possible(*engine.weights)) {
        draft_head.emplace(*engine.weights, engine.head_backend(),
                           engine.tokenizer->end_of_generation());
        forward.set_draft_head(*draft_head);
    }
    if (engine.adapter != nullptr) {
        adapter.emplace(parts_of_adapter(engine));
    }
}

Session::Impl::~Impl() {
    keep_notes();
}

void Session::Impl::keep_notes() {
    if (has_memory()) {
        engine.learned->add(notes);
    }
}

int Session::Impl::max_verify_rows() const {
    const bool is_bound = engine.config.exact && invariant_rows > 1;
    const int cheap_rows = engine.limits().verify_rows;
    return std::min({is_bound ? invariant_rows : kScratchRows,
                     cheap_rows > 0 ? cheap_rows : kScratchRows, kScratchRows,
                     engine.config.n_ubatch});
}

const EarlierRuns& Session::Impl::runs_for(const SpeculationOptions& options) {
    if (!has_memory() || begins_with_memory(options)) {
        return known;
    }
    if (!known_without_memory) {
        known_without_memory.emplace(saved_runs(engine));
    }
    return *known_without_memory;
}

std::unique_ptr<Strategy> Session::Impl::new_strategy(const SpeculationOptions& options) {
    const EarlierRuns& runs = runs_for(options);
    // The text of a projection is meaningless.
    const bool is_worth_notes = has_memory() && options.assume_acceptance < 0;
    return make_strategy(options, {.config = engine.model,
                                   .forward = forward,
                                   .cache = cache,
                                   .profile = runs.profile,
                                   .plans = runs.plans,
                                   .max_rows = max_verify_rows(),
                                   .trees_are_exact = trees_are_exact,
                                   .adapter = adapter ? &*adapter : nullptr,
                                   .known = has_memory() ? &runs.learned : nullptr,
                                   .notes = is_worth_notes ? &notes : nullptr});
}

void Session::Impl::check_prompt(std::span<const Token> prompt) const {
    if (prompt.empty()) {
        fail("prompt: expected at least one token, found none");
    }
    if (prompt.size() > static_cast<std::size_t>(engine.config.n_ctx)) {
        fail("prompt: expected at most ", engine.config.n_ctx,
             " tokens (the context, `.n_ctx`), found ", prompt.size());
    }
    check_tokens("prompt", prompt);
}

void Session::Impl::check_tokens(std::string_view what, std::span<const Token> tokens) const {
    const auto bad = std::find_if(tokens.begin(), tokens.end(), [&](Token token) {
        return token < 0 || token >= engine.model.n_vocab;
    });
    if (bad != tokens.end()) {
        fail(what, ": expected token ids below ", engine.model.n_vocab, ", found ", *bad,
             " at position ", bad - tokens.begin());
    }
}

void Session::Impl::check_request(std::span<const Token> prompt,
                                  const GenerateOptions& options) const {
    check_prompt(prompt);
    for (const std::vector<Token>& reference : options.references) {
        check_tokens("references", reference);
    }
    check_tokens("prediction", options.prediction);
}

// Keeps the rows that `prompt` shares with the history, all but those of its last token: that one
// is computed again, because its logits are wanted.
int Session::Impl::keep_common_beginning(std::span<const Token> prompt) {
    KNAP_ASSERT(static_cast<std::size_t>(cache.committed()) <= history.size(),
                "every committed row is that of a token");
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
    check_request(prompt, options);
    return generate(prompt, options, observer,
                    strategies.get(options.speculation, [this](const SpeculationOptions& how) {
                        return new_strategy(how);
                    }));
}

Result Session::Impl::generate(std::span<const Token> prompt,
                               const GenerateOptions& options,
                               const Observer& observer,
                               Strategy& strategy) {
    check_request(prompt, options);
    Generation generation(*this, options, observer, strategy);
    history.reserve(static_cast<std::size_t>(engine.config.n_ctx));
    const PageSupply::Request request(pages);
    const Scheduler::Client client(engine.passes());
    const CancelScope cancel(forward, observer.is_cancelled);
    const RowsOfText rows(*this);
    if (!options.reuse_prompt) {
        cache.truncate(0);
    }
    Result result = generation.run(keep_common_beginning(prompt));
    keep_notes();
    return result;
}

Session::Session(Engine& engine) : impl_(std::make_unique<Impl>(impl_of(engine))) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Result Session::generate(std::span<const Token> prompt,
                         const GenerateOptions& options,
                         const Observer& observer) {
    return impl_->generate(prompt, options, observer);
}

void Session::check(std::span<const Token> prompt, const GenerateOptions& options) {
    impl_->check_request(prompt, options);
    const auto strategy = impl_->new_strategy(options.speculation);
    const Observer nobody;
    Generation(*impl_, options, nobody, *strategy);
}

std::span<const Token> Session::history() const {
    return impl_->history;
}

void Session::reset() {
    impl_->reset();
}

void Session::forget_strategies() {
    impl_->strategies.clear();
}

void Session::renew_strategies() {
    impl_->strategies.clear();
    impl_->known = earlier_runs(impl_->engine);
    impl_->known_without_memory.reset();
}

bool Session::use_idle_time(const std::function<bool()>& is_cancelled) {
    return impl_->use_idle_time(is_cancelled);
}

// No client of the scheduler: other sessions go on as if this one were not there.
bool Session::Impl::use_idle_time(const std::function<bool()>& is_cancelled) {
    Strategy* strategy = strategies.latest();
    const PageSupply::Request request(pages, PageSupply::Request::Kind::idle);
    const int n_rows = std::min(cache.capacity(), cache.committed() + kScratchRows);
    const int n_wished = std::min(
        cache.capacity(), cache.committed() + std::max(kScratchRows, engine.config.n_ubatch));
    if (strategy == nullptr || cache.committed() == 0 ||
        !engine.pages().reserve_if_free(pages, n_rows, n_wished)) {
        return false;
    }
    const CancelScope cancel(forward, is_cancelled);
    const bool has_worked = strategy->use_idle_time(
        std::span(history).first(static_cast<std::size_t>(cache.committed())));
    keep_notes();
    return has_worked;
}

void Session::Impl::reset() {
    engine.pages().release(pages);
    history.clear();
    n_prompt = 0;
}

void Session::Impl::publish_history() {
    if (shares_prefixes) {
        const auto n_rows = static_cast<std::size_t>(cache.committed());
        engine.pages().publish(pages, std::span(history).first(n_rows), true);
    }
}

void Session::save_prompt_cache(const std::filesystem::path& path) const {
    const PageSupply::Request request(impl_->pages);
    const std::size_t n_rows =
        std::min(impl_->n_prompt, static_cast<std::size_t>(impl_->cache.committed()));
    impl_->forward.use_rows([&] {
        write_prompt_cache(path, impl_->engine.fingerprint, impl_->engine.model.n_layers,
                           std::span(impl_->history).first(n_rows), impl_->cache);
    });
}

void Session::load_prompt_cache(const std::filesystem::path& path) {
    Engine::Impl& engine = impl_->engine;
    const PromptCacheFile file(path, engine.fingerprint, engine.model.n_layers, engine.config.n_ctx,
                               impl_->cache);
    impl_->check_tokens(path.string(), file.tokens());
    const int n_rows = static_cast<int>(file.tokens().size());
    const PageSupply::Request request(impl_->pages);
    impl_->reset();
    engine.pages().reserve(impl_->pages, n_rows, n_rows, {});
    impl_->forward.use_rows([&] { file.read_rows(impl_->cache); });
    impl_->history = file.tokens();
    impl_->n_prompt = impl_->history.size();
}

}  // namespace knap
