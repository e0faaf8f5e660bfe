// How the CUDA step kernel divides shared memory, for the sizes that GPUs have.
#include "kernels/cuda/step_memory.h"

#include <gtest/gtest.h>

namespace knap::test::step_memory_test {
namespace {

constexpr std::size_t kKib = 1024;

StepNeeds shape(int head_dim, int n_layers, int n_ff, ggml_type type) {
    return {.head_dim = head_dim,
            .heads_per_kv = 4,
            .most_inputs = n_ff,
            .n_layers = n_layers,
            .slot_bytes = copied_bytes(type),
            .has_halves = takes_halves(type)};
}

const StepNeeds k8bShape = shape(128, 32, 14336, GGML_TYPE_Q4_K);
const StepNeeds k8bWithQ6 = shape(128, 32, 14336, GGML_TYPE_Q6_K);
const StepNeeds k70bShape = shape(128, 80, 28672, GGML_TYPE_Q6_K);

TEST(StepMemory, PartsFollowEachOtherWithoutOverlap) {
    for (const StepNeeds& needs : {k8bShape, k8bWithQ6, shape(64, 16, 8192, GGML_TYPE_F16),
                                   shape(256, 26, 9216, GGML_TYPE_Q4_0)}) {
        for (const int columns : {1, 8, 16}) {
            const StepMemory memory = divide_memory(needs, 226 * 1024, 20000, columns);
            EXPECT_GE(memory.barriers, 20000);
            EXPECT_GE(memory.slots, memory.barriers + 2 * memory.n_slots * 8);
            EXPECT_EQ(memory.slots % 128, 0);
            EXPECT_EQ(memory.region, memory.slots + memory.n_slots * needs.slot_bytes);
            EXPECT_EQ(memory.region % 16, 0);
            EXPECT_EQ(memory.sums, memory.region + memory.region_bytes);
            EXPECT_EQ(memory.factors, memory.sums + sum_bytes(columns));
            EXPECT_GE(memory.n_slots, 2);
            EXPECT_LE(memory.end, 226 * 1024);
        }
    }
}

TEST(StepMemory, EndsWithinTheMemoryForPassesOfAnySize) {
    for (const StepNeeds& needs : {k8bShape, shape(64, 6, 704, GGML_TYPE_Q8_0)}) {
        for (const int columns : {1, 8, 16}) {
            for (std::size_t pass_bytes = 1000; pass_bytes < 20000; pass_bytes += 8) {
                const StepMemory memory = divide_memory(needs, 226 * 1024, pass_bytes, columns);
                ASSERT_LE(memory.end, 226 * 1024) << columns << " columns, " << pass_bytes;
            }
        }
    }
}

TEST(StepMemory, HasRoomForAttentionAndForInputs) {
    for (const int kib : {99, 163, 227}) {
        for (const int columns : {1, 8, 16}) {
            const StepMemory memory = divide_memory(k8bShape, kib * 1024, 20000, columns);
            EXPECT_GE(memory.region_bytes + sum_bytes(columns),
                      attention_bytes(128, std::min(4 * columns, 32)));
            EXPECT_GE(memory.region_bytes, 32 * columns * 80);  // of 2048 inputs
        }
    }
}

TEST(StepMemory, FillsWhatADeviceHasWithSlots) {
    EXPECT_EQ(divide_memory(k8bShape, 226 * 1024, 20000, 1).n_slots, 7);
    EXPECT_EQ(divide_memory(k8bShape, 162 * 1024, 20000, 1).n_slots, 3);
}

TEST(StepMemory, TakesSixteenRowsWhereTheyFitElseEight) {
    EXPECT_EQ(max_step_rows(k8bShape, 227 * kKib), 16);
    EXPECT_EQ(max_step_rows(k8bShape, 163 * kKib), 16);
    EXPECT_EQ(max_step_rows(k8bWithQ6, 227 * kKib), 16);
    EXPECT_EQ(max_step_rows(k8bWithQ6, 163 * kKib), 8);
    EXPECT_EQ(max_step_rows(k70bShape, 227 * kKib), 16);
    EXPECT_EQ(max_step_rows(k70bShape, 163 * kKib), 0);
    EXPECT_EQ(max_step_rows(k8bShape, 99 * kKib), 0);
    EXPECT_EQ(max_step_rows(shape(64, 16, 8192, GGML_TYPE_Q4_0), 99 * kKib), 0);
}

}  // namespace
}  // namespace knap::test::step_memory_test
