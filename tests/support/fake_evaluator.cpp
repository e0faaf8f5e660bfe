#include "support/fake_evaluator.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <utility>

#include <gtest/gtest.h>

namespace knap::test {

namespace {

constexpr std::size_t kWidth = 4;  // n_embd of the residual model

bool is_attention(int module) {
    return module % 2 == 0;
}

void run_target(FakeModel& model, FakeState input) {
    model.target = {std::move(input)};
    for (int module = 0; module < model.n_modules(); ++module) {
        model.target.push_back(model.run(module, Level::full, model.target.back()));
    }
}

double cosine(std::span<const double> a, std::span<const double> b) {
    double ab = 0;
    double aa = 0;
    double bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        ab += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    return ab / std::sqrt(aa * bb);
}

std::span<const double> state_row(const FakeState& state, std::size_t row) {
    return std::span(state).subspan(row * kWidth, kWidth);
}

double sum_of_cosines(const FakeState& a, const FakeState& b) {
    double sum = 0;
    for (std::size_t row = 0; row < a.size() / kWidth; ++row) {
        sum += cosine(state_row(a, row), state_row(b, row));
    }
    return sum;
}

// The sum of the rows that a row attends to: itself and, in full attention, those before it.
FakeState seen(int module, const Level& level, const FakeState& state) {
    FakeState sums = state;
    if (is_attention(module) && level == Level::full) {
        for (std::size_t i = kWidth; i < sums.size(); ++i) {
            sums[i] += sums[i - kWidth];
        }
    }
    return sums;
}

// state + tanh(matrix * seen), row by row
FakeState residual_step(std::span<const double> matrix, const FakeState& inputs, FakeState state) {
    for (std::size_t i = 0; i < state.size(); ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < kWidth; ++k) {
            sum += matrix[(i % kWidth) * kWidth + k] * inputs[i - i % kWidth + k];
        }
        state[i] += std::tanh(sum);
    }
    return state;
}

std::vector<double> random_numbers(std::mt19937& random, std::size_t n) {
    std::normal_distribution<double> normal(0.0, 1.0);
    std::vector<double> numbers(n);
    std::ranges::generate(numbers, [&] { return normal(random); });
    return numbers;
}

}  // namespace

FakeState FakeModel::run_or_skip(int module, const Level& level, const FakeState& state) const {
    return level == Level::skip ? state : run(module, level, state);
}

FakeState FakeModel::run_plan(const ModulePlan& plan) const {
    FakeState state = target.front();
    for (int module = 0; module < n_modules(); ++module) {
        const Module kind = is_attention(module) ? Module::attention : Module::mlp;
        state = run_or_skip(module, plan.level(module / 2, kind), state);
    }
    return state;
}

FakeModel additive_model(unsigned seed, int n_layers) {
    FakeModel model{.n_layers = n_layers, .n_rows = 4};
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> gain(1, 8);
    std::vector<double> gains(static_cast<std::size_t>(model.n_modules()));
    std::ranges::generate(gains, [&] { return gain(random); });
    model.run = [gains](int module, const Level& level, const FakeState& state) {
        const double whole = gains[static_cast<std::size_t>(module)];
        return FakeState{state[0] + (level == Level::full ? whole : std::floor(whole / 2))};
    };
    model.score = [](int /*module*/, const FakeState& state) { return state[0]; };
    run_target(model, {0.0});
    return model;
}

FakeModel residual_model(unsigned seed, int n_layers, int n_rows) {
    FakeModel model{.n_layers = n_layers, .n_rows = n_rows};
    std::mt19937 random(seed);
    std::vector<std::vector<double>> matrices(static_cast<std::size_t>(model.n_modules()));
    for (std::vector<double>& matrix : matrices) {
        matrix = random_numbers(random, kWidth * kWidth);
    }
    model.run = [matrices](int module, const Level& level, const FakeState& state) {
        return residual_step(matrices[static_cast<std::size_t>(module)], seen(module, level, state),
                             state);
    };
    run_target(model, random_numbers(random, kWidth * static_cast<std::size_t>(n_rows)));
    model.score = [target = model.target](int module, const FakeState& state) {
        return sum_of_cosines(state, target[static_cast<std::size_t>(module)]);
    };
    return model;
}

void FakeEvaluator::start(int module) {
    row_ = {model_.target[static_cast<std::size_t>(module)]};
    module_ = module;
    max_live_ = 1;
}

bool FakeEvaluator::try_module(const ModuleTrial& trial) {
    EXPECT_EQ(trial.module, module_);
    EXPECT_TRUE(results_.empty()) << "the last trial has not been decided";
    EXPECT_FALSE(trial.levels.empty());
    if (!trial.levels.empty()) {
        EXPECT_EQ(trial.levels.front().level, Level::full);
        EXPECT_EQ(trial.levels.front().scores.size(), row_.size());
    }
    if (cancels && cancels(trial.module)) {
        return false;
    }
    modules_tried_.push_back(trial.module);
    for (const LevelTrial& level : trial.levels) {
        try_level(trial, level);
    }
    max_live_ = std::max(max_live_, n_live());
    return true;
}

void FakeEvaluator::try_level(const ModuleTrial& trial, const LevelTrial& level) {
    EXPECT_GT(level.scores.size(), 0u);
    EXPECT_LE(level.scores.size(), row_.size());
    levels_.push_back(level.level);
    std::vector<FakeState>& results = results_.emplace_back();
    for (std::size_t i = 0; i < level.scores.size(); ++i) {
        const bool is_target = trial.first_is_target && i == 0 && level.level == Level::full;
        const auto after = static_cast<std::size_t>(trial.module) + 1;
        const FakeState result = is_target ? model_.target[after]
                                           : model_.run_or_skip(trial.module, level.level, row_[i]);
        const double score = is_target ? n_rows() : model_.score(trial.module + 1, result);
        level.scores[i] =
            spoil ? spoil(trial.module, static_cast<int>(i), level.level, score) : score;
        if (level.level != Level::skip) {
            n_computed_ += is_target ? 0 : 1;
            results.push_back(result);
        }
    }
}

FakeState FakeEvaluator::result(const KeptState& kept) const {
    const auto level = static_cast<std::size_t>(kept.level);
    const auto state = static_cast<std::size_t>(kept.state);
    return levels_.at(level) == Level::skip ? row_.at(state) : results_.at(level).at(state);
}

void FakeEvaluator::keep(std::span<const KeptState> kept) {
    std::vector<FakeState> row;
    for (const KeptState& state : kept) {
        row.push_back(result(state));
    }
    row_ = std::move(row);
    levels_.clear();
    results_.clear();
    ++module_;
}

int saved_by(const KnapsackProblem& problem, const ModulePlan& plan) {
    int saved = 0;
    for (int module = 0; module < 2 * plan.n_layers(); ++module) {
        const Level& level =
            plan.level(module / 2, module % 2 == 0 ? Module::attention : Module::mlp);
        for (const LevelChoice& choice : problem.items[static_cast<std::size_t>(module)].cheaper) {
            saved += choice.level == level ? choice.saved : 0;
        }
    }
    return saved;
}

int FakeEvaluator::n_live() const {
    std::size_t n = row_.size();
    for (const std::vector<FakeState>& results : results_) {
        n += results.size();
    }
    return static_cast<int>(n);
}

}  // namespace knap::test
