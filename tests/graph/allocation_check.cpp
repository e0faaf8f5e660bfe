// Checks that steady decoding and drafting allocate no memory, by counting every call of malloc and
// related functions. ggml makes two small allocations whenever it computes, even for an empty
// graph; a step must not make more. This is a separate program because it replaces malloc.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "support/loaded_model.h"
#include "support/tiny_model.h"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {
std::atomic<long> n_allocations{0};
}

extern "C" {
void* malloc(std::size_t size) {
    ++n_allocations;
    return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
    ++n_allocations;
    return __libc_calloc(count, size);
}
void* realloc(void* pointer, std::size_t size) {
    ++n_allocations;
    return __libc_realloc(pointer, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
    ++n_allocations;
    return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
    ++n_allocations;
    *out = __libc_memalign(alignment, size);
    return *out == nullptr ? 12 : 0;
}
}

namespace {

using namespace knap;

constexpr int kSteps = 49;

// Counts the allocations that ggml makes to compute `kSteps` empty graphs.
long count_for_empty_graphs(Backend& backend) {
    ggml_context_ptr context(ggml_init({ggml_graph_overhead(), nullptr, true}));
    ggml_cgraph* graph = ggml_new_graph(context.get());
    backend.compute(graph);
    const long before = n_allocations;
    for (int i = 0; i < kSteps; ++i) {
        backend.compute(graph);
    }
    return n_allocations - before;
}

long count_for_steps(test::LoadedModel& model, const ModulePlan* plan) {
    constexpr int kPrompt = 70;
    test::ForwardRig rig(model, {.capacity = 512});
    const auto tokens = test::random_tokens(kPrompt + 1 + kSteps, model.config.n_vocab, 1);
    const int last_row = 0;
    const auto step = [&](int row) {
        rig.forward.run({.tokens = std::span(tokens).subspan(static_cast<std::size_t>(row), 1),
                         .plan = plan,
                         .first_row = row,
                         .logit_rows = std::span(&last_row, 1)});
    };
    rig.feed(std::span(tokens).first(kPrompt));
    step(kPrompt);  // builds the graph of the bucket that holds rows 64 to 127
    const long before = n_allocations;
    for (int row = kPrompt + 1; row < kPrompt + 1 + kSteps; ++row) {
        step(row);
    }
    return n_allocations - before;
}

}  // namespace

int main() {
    test::LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    const long counted_in_all = n_allocations;
    const long empty = count_for_empty_graphs(model.backend);
    const long steps = count_for_steps(model, nullptr);
    ModulePlan draft_plan(model.config.n_layers);
    draft_plan.set(0, Module::attention, Level::windowed(16, 16));
    draft_plan.set(1, Module::attention, Level::skip);
    const long drafts = count_for_steps(model, &draft_plan);
    std::printf("%d steps: %ld allocations; %d drafts: %ld; %d empty graphs: %ld\n", kSteps, steps,
                kSteps, drafts, kSteps, empty);
    const bool is_counting = counted_in_all > 0;
    return is_counting && steps == empty && drafts == empty ? 0 : 1;
}
