// Knows which weights a thread reads first in its next product. They are fetched at the end of the
// thread's part of the phase before, and in large teams also while the thread waits for the others:
// threads that have little to do in a phase, such as most of them in the attention of a short
// context, use that time for the next one.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "cpu/cpu_weights.h"
#include "device/thread_team.h"

namespace knap {

struct CpuModel;
struct CpuRequest;

// As much of a matrix, from this group on, as should be there when its product begins.
std::span<const std::byte> first_weights(const PackedMatrix& matrix, int first_group);

class WeightsAhead final : public WaitingWork {
  public:
    // All must outlive the object.
    WeightsAhead(const CpuModel& model, const CpuRequest& request, const TeamMember& member)
        : model_(model), request_(request), member_(member) {}

    // The next product of the pass, with `n_rows` rows.
    void expect_output(int layer, int n_rows) { expect(Product::output, layer, n_rows); }
    void expect_down(int layer, int n_rows) { expect(Product::down, layer, n_rows); }
    // The first product of that module, or of the first one after it that the plan runs.
    void expect_module(int module, int n_rows) { expect(Product::module, module, n_rows); }

    // What this thread reads first in that product, as much as should be there when it begins.
    // Empty if no product is expected.
    std::span<const std::byte> first();
    // What will be fetched while waiting: the weights that this thread reads first.
    std::span<const std::span<const std::byte>> planned();
    bool step() override;

  private:
    enum class Product { none, output, down, module };

    void expect(Product product, int number, int n_rows);
    void plan(std::size_t max_pieces);
    void plan_module(int module);
    void plan_heads(const CpuLayer& layer);
    void plan_product(const PackedMatrix& matrix);
    void plan_gates(const CpuLayer& layer);
    bool has_room() const;
    void add(const PackedMatrix& matrix, int first_group, int n_groups);

    const CpuModel& model_;
    const CpuRequest& request_;
    const TeamMember& member_;
    Product product_ = Product::none;
    int number_ = 0;  // of the layer, or of the module
    int n_rows_ = 0;
    bool is_planned_ = true;
    std::array<std::span<const std::byte>, 16> pieces_;
    std::size_t n_pieces_ = 0;
    std::size_t max_pieces_ = 0;
    std::size_t n_bytes_ = 0;  // of all pieces
    // What is fetched next: a piece, and the place in it.
    std::size_t piece_ = 0;
    std::size_t at_ = 0;
};

}  // namespace knap
