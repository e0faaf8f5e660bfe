// Drafts by lookup alone (lookup_source.h): copied tokens are verified as they are. Drafting costs
// no pass, and gains where text repeats itself: summaries, code, edits, loops.
#pragma once

#include <memory>

#include "decode/lookup/lookup_source.h"
#include "decode/strategy.h"

namespace knap {

struct LookupOptions {
    NgramRange ngrams{};
    int n_draft = 10;  // longest draft, in tokens
};

class LookupStrategy final : public Strategy {
  public:
    explicit LookupStrategy(const LookupOptions& options)
        : n_draft_(options.n_draft), source_(options.ngrams) {}

    void begin(const RequestStart& request) override {
        source_.begin(request.prompt, request.references, request.prediction);
    }
    Proposal propose(const RoundState& state) override;

  private:
    int n_draft_;
    LookupSource source_;
    DraftTree tree_;
};

std::unique_ptr<Strategy> build_lookup(const SpeculationOptions& options,
                                       const StrategyParts& parts);

}  // namespace knap
