#include "tools/profile/profiling.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "decode/advance.h"
#include "forward/forward.h"
#include "kv/sequence.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"
#include "search/cost/profile.h"

namespace knap {
namespace {

// The most rows of a verification to measure.
constexpr int kMeasuredRows = 16;
// r: rows of the text that plans are compared on.
constexpr int kSearchRows = 64;
// Branches that a search computes side by side; each needs rows above the context.
constexpr int kMaxCells = 32;

constexpr std::array kContexts{512, 2048, 4096, 8192};
constexpr int kSinks = 16;
// Ascending. A plan can mix the first kMaxWindows; wider ones are used for all attentions at once.
constexpr std::array kRecent{64, 128, 256, 512, 1024};

// A cache and a forward pass separate from those of sessions.
struct Workbench {
    Workbench(Engine::Impl& engine, int n_scratch)
        : rows(engine.single_sequence(engine.config.n_ctx + n_scratch, engine.config.n_ubatch)),
          cache(rows->sequence()),
          forward(rows->forward()) {}

    std::unique_ptr<SingleSequence> rows;
    Sequence& cache;
    Forward& forward;
};

// More rows, bins, cells and replays than a request could afford.
PlanSearchOptions generous_options(std::vector<ModulePlan> known) {
    PlanSearchOptions options{
        .n_bins = 96,
        .max_cells = kMaxCells,
        .max_replays = 64,
        .known = std::move(known),
    };
    for (const int recent : kRecent) {
        options.windows.push_back({.sinks = kSinks, .recent = recent});
    }
    return options;
}

// Searches at one context length after another, in ascending order.
class PlanFinder {
  public:
    // `is_cancelled` must outlive the object.
    PlanFinder(Engine::Impl& engine,
               std::span<const Token> text,
               const CostModel& costs,
               const std::function<bool()>& is_cancelled)
        : text_(text), costs_(costs), bench_(engine, kMaxCells * kSearchRows) {
        bench_.forward.set_cancel(&is_cancelled);
    }

    // Returns nullopt when cancelled.
    std::optional<PlansAtContext> find_at(int n_context) {
        const auto context = text_.first(static_cast<std::size_t>(n_context));
        if (!advance(bench_.forward, bench_.cache, context)) {
            return std::nullopt;
        }
        auto found = search_plans(bench_.forward, bench_.cache, context, kSearchRows, costs_,
                                  generous_options(good_));
        if (!found) {
            return std::nullopt;
        }
        PlansAtContext best{.n_context = n_context,
                            .plain_step_ms = costs_.plain_step_ms(n_context),
                            .plans = frontier(std::move(*found))};
        remember(best.plans);
        return best;
    }

  private:
    // The best plans of one context are tried at the next.
    void remember(const std::vector<FoundPlan>& plans) {
        for (const FoundPlan& found : plans) {
            if (std::ranges::find(good_, found.plan) == good_.end()) {
                good_.push_back(found.plan);
            }
        }
    }

    std::span<const Token> text_;
    const CostModel& costs_;
    Workbench bench_;
    std::vector<ModulePlan> good_;
};

}  // namespace

std::optional<CostProfile> profile_engine(Engine& engine,
                                          double seconds,
                                          const ProfilingObserver& observer) {
    Engine::Impl& impl = impl_of(engine);
    const CostProfile blank = blank_profile(impl);
    Workbench bench(impl, kMeasuredRows);
    bench.forward.set_cancel(&observer.is_cancelled);
    return measure_profile(bench.forward, bench.cache, blank.layer_classes,
                           {.max_context = impl.config.n_ctx,
                            .max_rows = kMeasuredRows,
                            .seconds = seconds,
                            .bytes = blank.bytes,
                            .layer_windows = blank.layer_windows,
                            .expert_shares = blank.expert_shares,
                            .on_progress = observer.on_progress});
}

std::vector<SavedPlan> to_saved(const PlansAtContext& found) {
    std::vector<SavedPlan> list;
    for (const FoundPlan& one : found.plans) {
        list.push_back({.n_context = found.n_context,
                        .plan = one.plan,
                        .agreed = static_cast<double>(one.n_agreed),
                        .n_rows = one.n_rows});
    }
    return list;
}

std::vector<int> plan_contexts(int n_tokens, int n_ctx) {
    const int n_reached = std::min(n_tokens, n_ctx);
    std::vector<int> contexts;
    std::ranges::copy_if(kContexts, std::back_inserter(contexts),
                         [n_reached](int n_context) { return n_context <= n_reached; });
    if (contexts.empty()) {
        // Windows only make sense if there are rows to leave out.
        constexpr int kLeast = 2 * kSearchRows;
        if (n_reached < kLeast) {
            fail("--plans: expected a text and a context (-c) of at least ", kLeast,
                 " tokens, found ", n_tokens, " and ", n_ctx);
        }
        contexts.push_back(n_reached);
    }
    return contexts;
}

bool find_plans(Engine& engine,
                std::span<const Token> text,
                const CostModel& costs,
                const std::function<void(const PlansAtContext&)>& on_found,
                const ProfilingObserver& observer) {
    Engine::Impl& impl = impl_of(engine);
    const auto contexts = plan_contexts(static_cast<int>(text.size()), impl.config.n_ctx);
    PlanFinder finder(impl, text, costs, observer.is_cancelled);
    const auto report_progress = [&](int n_done) {
        if (observer.on_progress) {
            observer.on_progress(static_cast<double>(n_done) / contexts.back());
        }
    };
    report_progress(0);
    for (const int n_context : contexts) {
        const auto found = finder.find_at(n_context);
        if (!found) {
            return false;
        }
        if (on_found) {
            on_found(*found);
        }
        report_progress(n_context);
    }
    return true;
}

}  // namespace knap
