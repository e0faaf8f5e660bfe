// At which level each module of a model runs. A model of L layers is a list of 2L modules (methods:
// blocks): the attention and the MLP of each layer, each with its norm. Every pass is run with a
// plan; the whole model is the plan with every module at `full`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace knap {

enum class Module : std::uint8_t { attention, mlp };

// `skip`: the residual stream passes through unchanged, and an attention writes no keys or values.
enum class Level : std::uint8_t { full, skip };

class ModulePlan {
  public:
    explicit ModulePlan(int n_layers)
        : levels_(2 * static_cast<std::size_t>(n_layers), Level::full) {}

    int n_layers() const { return static_cast<int>(levels_.size() / 2); }
    Level level(int layer, Module module) const { return levels_[index(layer, module)]; }
    void set(int layer, Module module, Level level) { levels_[index(layer, module)] = level; }
    bool runs(int layer, Module module) const { return level(layer, module) != Level::skip; }

    bool operator==(const ModulePlan&) const = default;

  private:
    static std::size_t index(int layer, Module module) {
        return 2 * static_cast<std::size_t>(layer) + (module == Module::mlp ? 1 : 0);
    }

    std::vector<Level> levels_;
};

}  // namespace knap
