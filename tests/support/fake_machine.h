// Machines on which every pass takes a known time, for tests of cost models.
#pragma once

#include <vector>

#include "tools/check/fake_machine.h"

namespace knap::test {

using knap::FakeMachine;

// A machine of `n_layers` layers of one class.
FakeMachine plain_machine(int n_layers);
// At a long context attention dominates a step, and each further row of a pass costs `row_price`
// times a one-row pass.
FakeMachine long_context_machine(int n_layers, double row_price);
// Alternates between two classes with different times.
FakeMachine mixed_machine(int n_layers);

// Steps with skipped modules and windowed attentions, at contexts of up to 8192 tokens.
std::vector<Probe> random_steps(int n_layers, int n);

}  // namespace knap::test
