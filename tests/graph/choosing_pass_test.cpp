// Passes that choose return the argmax of their logits, and no logits.
#include <vector>

#include <gtest/gtest.h>

#include "forward/forward.h"
#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/remote_device.h"
#include "support/tiny_model.h"

namespace knap::test::choosing_pass_test {
namespace {

constexpr int kContext = 30;
const std::vector<int> kLogitRows{0, 2, 5, 7};

struct ChoosingRig {
    explicit ChoosingRig(ggml_backend_dev_t device = nullptr, const std::vector<int>& split = {})
        : model(tiny_model("tiny-llama", "Q8_0"), Repack::off, 1, Kernels::ggml, device, split),
          rig(model) {
        rig.feed(random_tokens(kContext, model.config.n_vocab, 1));
        tokens = random_tokens(8, model.config.n_vocab, 2);
    }

    ForwardResult run(const ModulePlan& plan, bool chooses) {
        return rig.forward.run({.tokens = tokens,
                                .plan = &plan,
                                .first_row = kContext,
                                .logit_rows = kLogitRows,
                                .chooses = chooses});
    }

    void expect_choices(const ModulePlan& plan) {
        const auto logits = run(plan, false).logits;
        const auto n_vocab = static_cast<std::size_t>(model.config.n_vocab);
        std::vector<Token> expected;
        for (std::size_t i = 0; i < kLogitRows.size(); ++i) {
            expected.push_back(argmax(logits.subspan(i * n_vocab, n_vocab)));
        }
        const ForwardResult chosen = run(plan, true);
        EXPECT_EQ(std::vector<Token>(chosen.choices.begin(), chosen.choices.end()), expected);
        EXPECT_TRUE(chosen.logits.empty());
    }

    LoadedModel model;
    ForwardRig rig;
    std::vector<Token> tokens;
};

TEST(ChoosingPass, ReturnsTheArgmaxOfTheLogits) {
    ChoosingRig rig;
    ModulePlan plan(rig.model.config.n_layers);
    rig.expect_choices(plan);
    plan.set(1, Module::mlp, Level::skip);
    rig.expect_choices(plan);
}

TEST(ChoosingPass, WorksWithAReducedHead) {
    ChoosingRig rig;
    rig.rig.draft_head->begin(std::vector<Token>{251, 130, 90});
    ModulePlan plan(rig.model.config.n_layers);
    plan.set_head(HeadLevel::reduced);
    rig.expect_choices(plan);
}

TEST(ChoosingPass, WorksAcrossSeveralDevices) {
    ChoosingRig rig(nullptr, {1, 1, 2});
    rig.expect_choices(ModulePlan(rig.model.config.n_layers));
}

TEST(ChoosingPass, ReadsOnlyIdsFromADevice) {
    ChoosingRig rig(remote_device());
    const ModulePlan plan(rig.model.config.n_layers);
    rig.expect_choices(plan);
    const std::size_t before = rig.rig.forward.statistics().bytes_read;
    rig.run(plan, true);
    EXPECT_EQ(rig.rig.forward.statistics().bytes_read - before, kLogitRows.size() * sizeof(Token));
}

TEST(ChoosingPass, CopiesNothingOnTheHost) {
    ChoosingRig rig;
    rig.run(ModulePlan(rig.model.config.n_layers), true);
    EXPECT_EQ(rig.rig.forward.statistics().bytes_read, 0u);
}

}  // namespace
}  // namespace knap::test::choosing_pass_test
