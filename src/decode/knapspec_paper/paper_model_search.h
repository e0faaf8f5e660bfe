// The published search on a session's model: states from its own passes, times from its profile.
#pragma once

#include <optional>
#include <span>

#include "decode/knapspec_paper/paper_search.h"
#include "decode/strategy.h"
#include "search/cost/cost_model.h"

namespace knap {

class PaperModelSearch final : public PaperSearch {
  public:
    // Everything in `parts` must outlive the object.
    PaperModelSearch(const PaperOptions& options, const StrategyParts& parts)
        : options_(options), parts_(parts) {}

    int max_rows() const override;
    TargetRows last_rows(std::span<const Token> text, int n_rows) override;
    PaperSearchResult find(const TargetRows& rows) override;

  private:
    bool learn_costs();

    PaperOptions options_;
    StrategyParts parts_;
    // Depends only on the model and the machine, so it outlasts a request.
    std::optional<CostModel> costs_;
};

}  // namespace knap
