// At which level each module of a model runs. A model of L layers is a list of 2L modules (methods:
// blocks): the attention and the MLP of each layer, each with its norm; the head stands beside
// them. Every pass is run with a plan; the whole model is the plan with every module at `full`. The
// paper's skip mask is a plan of `full` and `skip`; an early exit is a plan with its tail skipped.
// plan_text.h has the written form.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace knap {

enum class Module : std::uint8_t { attention, mlp };

// The rows that a windowed attention sees: the first `sinks` and the last `recent` committed ones,
// and those of the round at hand.
struct Window {
    int sinks = 0;
    int recent = 0;

    int n_rows() const { return sinks + recent; }  // committed ones, at most
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a pointer in the comparison with 0
    auto operator<=>(const Window&) const = default;
};

inline constexpr int kMaxWindowRows = 1 << 20;
// Distinct windows of one plan: every one of them needs memory of its own beside the cache.
inline constexpr int kMaxWindows = 4;

struct Level {
    enum class Kind : std::uint8_t { full, skip, window };
    Kind kind = Kind::full;
    Window window{};  // of Kind::window; zeros otherwise

    // Named as the kinds are: Level::full reads like an enumerator.
    // NOLINTBEGIN(readability-identifier-naming)
    static const Level full;
    // The residual stream passes through unchanged, and an attention writes no keys or values.
    static const Level skip;
    // NOLINTEND(readability-identifier-naming)
    static constexpr Level windowed(int sinks, int recent) {
        return {Kind::window, {sinks, recent}};
    }

    bool operator==(const Level&) const = default;
};
inline constexpr Level Level::full{};
inline constexpr Level Level::skip{Level::Kind::skip};

// `reduced`: logits of a part of the vocabulary only (model/head_subset.h).
enum class HeadLevel : std::uint8_t { full, reduced };

class ModulePlan {
  public:
    explicit ModulePlan(int n_layers) : levels_(2 * static_cast<std::size_t>(n_layers)) {}

    int n_layers() const { return static_cast<int>(levels_.size() / 2); }
    const Level& level(int layer, Module module) const { return levels_[index(layer, module)]; }
    // Windows are for attention.
    void set(int layer, Module module, Level level) { levels_[index(layer, module)] = level; }
    bool runs(int layer, Module module) const { return level(layer, module) != Level::skip; }
    void skip_from(int layer);  // both modules of that layer and of every later one

    HeadLevel head() const { return head_; }
    void set_head(HeadLevel level) { head_ = level; }

    bool is_full() const;  // the whole model
    std::size_t hash() const;
    bool operator==(const ModulePlan&) const = default;

  private:
    static std::size_t index(int layer, Module module) {
        return 2 * static_cast<std::size_t>(layer) + (module == Module::mlp ? 1 : 0);
    }

    std::vector<Level> levels_;
    HeadLevel head_ = HeadLevel::full;
};

// Skips the layers from `exit_layer` on.
ModulePlan early_exit_plan(int n_layers, int exit_layer);
// Every attention at `window`, every MLP full.
ModulePlan uniform_window_plan(int n_layers, Window window);

// The leading layers with both modules at full. A pass with the plan computes for them what the
// whole model would: hidden rows, keys and values need no second look (methods O13).
int exact_layers(const ModulePlan& plan);
// The layers up to the last one that runs anything: a pass may end there.
int exit_layer(const ModulePlan& plan);
// Every window in use, ascending, each once.
std::vector<Window> distinct_windows(const ModulePlan& plan);

// The same plan after `n_context` committed rows: a window that covers them all is full attention.
ModulePlan canonical(ModulePlan plan, int n_context);

// How messages name the setting that holds a plan.
inline constexpr std::string_view kPlanSetting = "`.settings[plan]`";

// Throws when the plan has more than kMaxWindows windows. `where` begins the message.
void check_windows(const ModulePlan& plan, std::string_view where);
// Throws when the engine cannot run the plan on a model of `n_layers` layers whose head runs at
// `cheapest_head` at least.
void check_runnable(const ModulePlan& plan,
                    int n_layers,
                    std::string_view where = kPlanSetting,
                    HeadLevel cheapest_head = HeadLevel::full);

}  // namespace knap

template <>
struct std::hash<knap::ModulePlan> {
    std::size_t operator()(const knap::ModulePlan& plan) const noexcept { return plan.hash(); }
};
