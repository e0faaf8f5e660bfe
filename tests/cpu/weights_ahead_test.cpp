#include "cpu/weights_ahead.h"

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/cpu_pass.h"

namespace knap::test::weights_ahead_test {
namespace {

constexpr int kEmbd = 96;
constexpr int kFfn = 160;

// Two layers and a head, whose matrices have memory of their own.
class WeightsAheadTest : public ::testing::Test {
  protected:
    WeightsAheadTest() {
        config_.n_layers = 2;
        config_.n_embd = kEmbd;
        config_.n_heads = 8;
        config_.n_kv_heads = 4;
        config_.head_dim = 16;
        for (int i = 0; i < 2; ++i) {
            model_.layers.push_back({.q = matrix(kEmbd, 128),
                                     .k = matrix(kEmbd, 64),
                                     .v = matrix(kEmbd, 64),
                                     .o = matrix(128, kEmbd),
                                     .gate = matrix(kEmbd, kFfn),
                                     .up = matrix(kEmbd, kFfn),
                                     .down = matrix(kFfn, kEmbd)});
        }
        request_.plan = &plan_;
        request_.exit_layer = 2;
        request_.logit_rows = logit_rows_;
        request_.head = matrix(kEmbd, 300);
    }

    CpuMatrix matrix(int n_in, int n_out) {
        std::vector<std::byte>& memory =
            memory_.emplace_back(packed_bytes(GGML_TYPE_Q8_0, n_in, n_out));
        return {&matrices_.emplace_back(PackedMatrix{
            .type = GGML_TYPE_Q8_0, .n_in = n_in, .n_out = n_out, .data = memory.data()})};
    }

    // Checks that what the threads plan, together, is all of these matrices, each byte once.
    template <typename Expect>
    void expect_all_of(std::vector<CpuMatrix> matrices, Expect expect) {
        std::vector<const std::byte*> planned;
        for (int i = 0; i < team_.n_threads(); ++i) {
            const TeamMember member(team_, i);
            WeightsAhead ahead(model_, request_, member);
            expect(ahead);
            std::size_t n_bytes = 0;
            for (const auto& piece : ahead.planned()) {
                n_bytes += piece.size();
                for (const std::byte& byte : piece) {
                    planned.push_back(&byte);
                }
            }
            int n_steps = 1;
            while (ahead.step()) {
                ++n_steps;
            }
            EXPECT_GE(n_steps * 4 * 64, static_cast<int>(n_bytes)) << "all of it is fetched";
        }
        std::vector<const std::byte*> all;
        for (const CpuMatrix& one : matrices) {
            const PackedMatrix& of = *one.matrix;
            for (std::size_t i = 0;
                 i < group_bytes(of.type, of.n_in) * static_cast<std::size_t>(of.n_groups()); ++i) {
                all.push_back(of.data + i);
            }
        }
        std::ranges::sort(planned);
        std::ranges::sort(all);
        EXPECT_TRUE(planned == all) << planned.size() << " bytes planned, " << all.size();
    }

    std::deque<std::vector<std::byte>> memory_;
    std::deque<PackedMatrix> matrices_;
    ModelConfig config_;
    CpuModel model_{.config = config_};
    ModulePlan plan_{2};
    std::array<int, 1> logit_rows_{0};
    CpuRequest request_;
    ThreadTeam team_{3};
};

TEST_F(WeightsAheadTest, ProductsOfALayer) {
    const CpuLayer& layer = model_.layers[1];
    expect_all_of({layer.q, layer.k, layer.v}, [](auto& ahead) { ahead.expect_module(2, 1); });
    expect_all_of({layer.o}, [](auto& ahead) { ahead.expect_output(1, 1); });
    expect_all_of({layer.gate, layer.up}, [](auto& ahead) { ahead.expect_module(3, 1); });
    expect_all_of({layer.down}, [](auto& ahead) { ahead.expect_down(1, 2); });
}

// The rows that a thread reads first are the first of its share, with many rows, too.
TEST_F(WeightsAheadTest, AThreadBeginsWithTheFirstOfItsShare) {
    const auto expect_first = [&](const CpuMatrix& one, int index, int group, auto expect) {
        for (const int n_rows : {1, 5, 17}) {
            const TeamMember member(team_, index);
            WeightsAhead ahead(model_, request_, member);
            expect(ahead, n_rows);
            const PackedMatrix& of = *one.matrix;
            const std::size_t n_bytes = group_bytes(of.type, of.n_in);
            const auto first = ahead.first();
            EXPECT_EQ(first.data(), of.data + n_bytes * static_cast<std::size_t>(group));
            EXPECT_GE(first.size(), std::min<std::size_t>(n_bytes, 4 << 10));
            EXPECT_LE(first.data() + first.size(),
                      of.data + packed_bytes(of.type, of.n_in, of.n_out));
            const auto planned = ahead.planned();
            EXPECT_EQ(planned.empty(), n_rows > 4);
            if (!planned.empty()) {
                EXPECT_EQ(planned.front().data(), first.data()) << "what is planned is the same";
                EXPECT_EQ(ahead.first().data(), first.data()) << "and stays so";
            }
        }
    };
    const CpuLayer& layer = model_.layers[1];
    // Three threads: units of two heads, 4 of queries, 2 of keys and 2 of values, are divided into
    // 2, 3 and 3; three groups of `o` and `down`, five of gate and up, ten of the head.
    const auto heads = [](auto& ahead, int n_rows) { ahead.expect_module(2, n_rows); };
    expect_first(layer.q, 0, 0, heads);
    expect_first(layer.q, 1, 2, heads);
    expect_first(layer.k, 2, 1, heads);
    expect_first(layer.o, 1, 1, [](auto& ahead, int n_rows) { ahead.expect_output(1, n_rows); });
    expect_first(layer.down, 2, 2, [](auto& ahead, int n_rows) { ahead.expect_down(1, n_rows); });
    expect_first(layer.gate, 1, 1, [](auto& ahead, int n_rows) { ahead.expect_module(3, n_rows); });
    expect_first(request_.head, 2, 6,
                 [](auto& ahead, int n_rows) { ahead.expect_module(4, n_rows); });
    const TeamMember member(team_, 0);
    EXPECT_TRUE(WeightsAhead(model_, request_, member).first().empty());
}

TEST_F(WeightsAheadTest, AfterTheLastModuleComesTheHead) {
    expect_all_of({request_.head}, [](auto& ahead) { ahead.expect_module(4, 1); });
    request_.logit_rows = {};
    expect_all_of({}, [](auto& ahead) { ahead.expect_module(4, 1); });
}

TEST_F(WeightsAheadTest, ModulesThatThePlanSkipsAreNotRead) {
    plan_.set(0, Module::mlp, Level::skip);
    plan_.set(1, Module::attention, Level::skip);
    const CpuLayer& layer = model_.layers[1];
    expect_all_of({layer.gate, layer.up}, [](auto& ahead) { ahead.expect_module(1, 1); });
    request_.exit_layer = 1;
    expect_all_of({request_.head}, [](auto& ahead) { ahead.expect_module(1, 1); });
}

TEST_F(WeightsAheadTest, ManyRowsWaitForArithmetic) {
    expect_all_of({}, [](auto& ahead) { ahead.expect_output(0, 5); });
}

TEST_F(WeightsAheadTest, AnotherProductReplacesTheOneBefore) {
    expect_all_of({model_.layers[0].down}, [](auto& ahead) {
        ahead.expect_output(0, 1);
        ahead.step();
        ahead.expect_down(0, 1);
    });
}

TEST_F(WeightsAheadTest, NothingIsReadBeforeAProductIsExpected) {
    expect_all_of({}, [](auto& /*ahead*/) {});
}

}  // namespace
}  // namespace knap::test::weights_ahead_test
