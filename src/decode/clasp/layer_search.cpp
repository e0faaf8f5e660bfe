#include "decode/clasp/layer_search.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/error.h"
#include "search/cosine.h"

namespace knap {

namespace {

// One row of the table, and for all rows which cells were reached by skipping.
class LayerTable {
  public:
    LayerTable(LayerStates& states, int n_skipped)
        : states_(states),
          n_skipped_(n_skipped),
          n_embd_(states.target(0).size()),
          row_(n_embd_ * columns()),
          skips_(static_cast<std::size_t>(states.n_layers()) * columns()) {
        put(0, states_.target(0));
    }

    // Advances from row `layer` to the next. Returns false when cancelled.
    bool pass_layer(int layer) {
        const int n_run = std::min(layer, n_skipped_);  // cells 1..n_run have a state to run
        if (n_run > 0) {
            ran_ = states_.run(layer, std::span(row_).subspan(n_embd_, n_embd_ * size(n_run)));
            if (ran_.empty()) {
                return false;
            }
        }
        // From the last column to the first, so that cell j - 1 still belongs to the row before.
        if (layer < n_skipped_) {
            skip(layer, layer + 1);
        }
        const std::span<const float> target = states_.target(layer + 1);
        for (int j = n_run; j >= 1; --j) {
            const auto run = ran_.subspan(size(j - 1) * n_embd_, n_embd_);
            // Of equals, the one that skips.
            if (cosine(run, target) > cosine(cell(j - 1), target)) {
                put(j, run);
            } else {
                skip(layer, j);
            }
        }
        put(0, target);
        return true;
    }

    SkippedLayers best() const {
        const int n_layers = states_.n_layers();
        SkippedLayers found{.plan = ModulePlan(n_layers),
                            .cosine = cosine(cell(n_skipped_), states_.target(n_layers))};
        int j = n_skipped_;
        for (int layer = n_layers - 1; layer >= 0 && j > 0; --layer) {
            if (skips_[at(layer, j)]) {
                found.plan.set(layer, Module::attention, Level::skip);
                found.plan.set(layer, Module::mlp, Level::skip);
                --j;
            }
        }
        return found;
    }

  private:
    static std::size_t size(int n) { return static_cast<std::size_t>(n); }
    std::size_t columns() const { return size(n_skipped_) + 1; }
    std::size_t at(int layer, int j) const { return size(layer) * columns() + size(j); }
    std::span<const float> cell(int j) const {
        return std::span(row_).subspan(size(j) * n_embd_, n_embd_);
    }
    void put(int j, std::span<const float> state) {
        std::ranges::copy(state, row_.begin() + static_cast<std::ptrdiff_t>(size(j) * n_embd_));
    }
    void skip(int layer, int j) {
        put(j, cell(j - 1));
        skips_[at(layer, j)] = true;
    }

    LayerStates& states_;
    int n_skipped_;
    std::size_t n_embd_;
    std::vector<float> row_;   // [n_embd, columns]
    std::vector<bool> skips_;  // [columns, L] whether the cell after that layer skips it
    std::span<const float> ran_{};
};

}  // namespace

std::optional<SkippedLayers> find_skipped_layers(LayerStates& states, int n_skipped) {
    KNAP_ASSERT(n_skipped >= 1 && n_skipped <= states.n_layers(), "1 to L layers are skipped");
    LayerTable table(states, n_skipped);
    for (int layer = 0; layer < states.n_layers(); ++layer) {
        if (!table.pass_layer(layer)) {
            return std::nullopt;
        }
    }
    return table.best();
}

}  // namespace knap
