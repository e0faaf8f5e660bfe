// The level at which each module of a model runs. A model of L layers has 2L modules, the attention
// and the MLP of each layer, each with its norm; the head is separate (docs/methods.md, "Modules
// and streams"). Every pass runs with a plan; the plan with every module at `full` is the whole
// model. The paper's skip mask is a plan of `full` and `skip`; an early exit is a plan whose last
// layers are skipped. plan_text.h has the written form.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace knap {

enum class Module : std::uint8_t { attention, mlp };

// The rows that a windowed attention attends to: the first `sinks` and the last `recent` committed
// ones, and those of the current round.
struct Window {
    int sinks = 0;
    int recent = 0;

    int n_rows() const { return sinks + recent; }  // the most committed rows
    // Whether it hides anything from a layer with such a window of its own (0: none).
    bool narrows(int own_window) const { return own_window == 0 || recent + 1 < own_window; }
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a pointer in the comparison with 0
    auto operator<=>(const Window&) const = default;
};

inline constexpr int kMaxWindowRows = 1 << 20;
// The most distinct windows of one plan: each needs its own memory besides the cache.
inline constexpr int kMaxWindows = 4;

inline constexpr int kMaxExpertsOfLevel = 1024;

struct Level {
    enum class Kind : std::uint8_t { full, skip, window, experts };
    Kind kind = Kind::full;
    Window window{};    // of Kind::window; zeros otherwise
    int n_experts = 0;  // of Kind::experts; 0 otherwise

    // Named as the kinds are: Level::full reads like an enumerator.
    // NOLINTBEGIN(readability-identifier-naming)
    static const Level full;
    // The residual stream passes through unchanged, and an attention writes no keys or values.
    static const Level skip;
    // NOLINTEND(readability-identifier-naming)
    static constexpr Level windowed(int sinks, int recent) {
        return {Kind::window, {sinks, recent}};
    }
    // An MLP of experts of which each row uses its `n` best. Full where rows use no more anyway.
    static constexpr Level with_experts(int n) { return {Kind::experts, {}, n}; }

    bool operator==(const Level&) const = default;
};
inline constexpr Level Level::full{};
inline constexpr Level Level::skip{Level::Kind::skip};

// `reduced`: logits for part of the vocabulary only (model/head_subset.h).
enum class HeadLevel : std::uint8_t { full, reduced };

class ModulePlan {
  public:
    explicit ModulePlan(int n_layers) : levels_(2 * static_cast<std::size_t>(n_layers)) {}

    int n_layers() const { return static_cast<int>(levels_.size() / 2); }
    const Level& level(int layer, Module module) const { return levels_[index(layer, module)]; }
    // Only attentions can have windows, and only MLPs fewer experts.
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
// Every attention at `window`, every MLP at `full`.
ModulePlan uniform_window_plan(int n_layers, Window window);
// The same where it narrows layers with these windows of their own (LayerSpec::window, 0: none).
ModulePlan uniform_window_plan(Window window, std::span<const int> own_windows);

// The number of leading layers with both modules at `full`. For these, a pass with the plan
// computes exactly what the whole model would: streams, keys and values need not be computed again
// (docs/methods.md, "Exact leading layers").
int exact_layers(const ModulePlan& plan);
// The number of layers up to the last one that runs anything: a pass may end there.
int exit_layer(const ModulePlan& plan);
// The largest number of experts that a level of the plan has; 0: no level has one.
int most_experts(const ModulePlan& plan);
// All windows in use, ascending, without duplicates.
std::vector<Window> distinct_windows(const ModulePlan& plan);

// The plan as it acts after `n_context` committed rows: a window that covers them all is full
// attention.
ModulePlan canonical(ModulePlan plan, int n_context);
// The plan as it acts in layers with these windows of their own (LayerSpec::window): a window that
// does not narrow them is full attention.
ModulePlan within_own_windows(ModulePlan plan, std::span<const int> own_windows);

// The name of the setting that holds a plan, for messages.
inline constexpr std::string_view kPlanSetting = "`.settings[plan]`";

// Throws if the plan has more than kMaxWindows windows. `where` begins the message.
void check_windows(const ModulePlan& plan, std::string_view where);
// Throws if a level of the plan has as many experts as rows of the model use, or more. `n_used` 0:
// the model has none.
void check_experts(const ModulePlan& plan, int n_used, std::string_view where);
// Throws if the engine cannot run the plan on a model of `n_layers` layers whose cheapest available
// head is `cheapest_head`.
void check_runnable(const ModulePlan& plan,
                    int n_layers,
                    std::string_view where = kPlanSetting,
                    HeadLevel cheapest_head = HeadLevel::full);

}  // namespace knap

template <>
struct std::hash<knap::ModulePlan> {
    std::size_t operator()(const knap::ModulePlan& plan) const noexcept { return plan.hash(); }
};
