// Compares the search with simple versions of itself: trying every plan, and the published
// pseudo-code with the whole table of states in memory.
#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "search/knapsack.h"
#include "search/module_weights.h"
#include "search/throughput.h"
#include "support/fake_evaluator.h"
#include "support/speedup_bound.h"

namespace knap::knapsack_property_test {
namespace {

using test::additive_model;
using test::FakeEvaluator;
using test::FakeModel;
using test::FakeState;
using test::residual_model;
using test::saved_by;

const KnapsackOptions kNoPruning{.min_cosine = -1};

Module kind_of(int module) {
    return module % 2 == 0 ? Module::attention : Module::mlp;
}

// Random weights, with windows as well as skips, and with forced modules.
KnapsackProblem random_problem(unsigned seed, int n_layers) {
    std::mt19937 random(seed);
    const auto weight = [&random](int least) {
        return std::uniform_int_distribution<int>(least, 4)(random);
    };
    KnapsackProblem problem{.budget = weight(0) * n_layers};
    for (int module = 0; module < 2 * n_layers; ++module) {
        KnapsackItem& item = problem.items.emplace_back();
        if (weight(0) == 0) {
            continue;
        }
        item.cheaper.push_back({.level = Level::skip, .saved = weight(1)});
        if (kind_of(module) == Module::attention) {
            item.cheaper.push_back({.level = Level::windowed(1, 8), .saved = weight(0)});
        }
    }
    return problem;
}

// Every plan that the problem allows, regardless of the budget.
std::vector<ModulePlan> all_plans(const KnapsackProblem& problem, int n_layers) {
    std::vector<ModulePlan> plans = {ModulePlan(n_layers)};
    for (int module = 0; module < 2 * n_layers; ++module) {
        const std::size_t n_shorter = plans.size();
        for (const LevelChoice& choice : problem.items[static_cast<std::size_t>(module)].cheaper) {
            for (std::size_t i = 0; i < n_shorter; ++i) {
                ModulePlan plan = plans[i];
                plan.set(module / 2, kind_of(module), choice.level);
                plans.push_back(std::move(plan));
            }
        }
    }
    return plans;
}

// The best score of any plan, by saved weight.
std::map<int, double> best_scores(const KnapsackProblem& problem, const FakeModel& model) {
    std::map<int, double> best;
    for (const ModulePlan& plan : all_plans(problem, model.n_layers)) {
        const int saved = saved_by(problem, plan);
        const double score = model.score(model.n_modules(), model.run_plan(plan));
        if (saved <= problem.budget) {
            const auto [place, is_new] = best.try_emplace(saved, score);
            place->second = std::max(place->second, score);
        }
    }
    return best;
}

std::map<int, double> found_scores(const KnapsackProblem& problem,
                                   const std::vector<KnapsackCandidate>& candidates) {
    std::map<int, double> scores;
    for (const KnapsackCandidate& candidate : candidates) {
        scores[saved_by(problem, candidate.plan)] = candidate.score;
    }
    return scores;
}

// Candidates in a form that can be compared.
using Found = std::vector<std::tuple<int, double, ModulePlan>>;

Found found(const KnapsackProblem& problem, const std::vector<KnapsackCandidate>& candidates) {
    Found all;
    for (const KnapsackCandidate& candidate : candidates) {
        all.emplace_back(saved_by(problem, candidate.plan), candidate.score, candidate.plan);
    }
    return all;
}

// The published search line by line, with every row of states kept (docs/methods.md, "Knapsack",
// "Backtracking").
Found published_search(const FakeModel& model, const KindWeights& weights, double tau) {
    struct Cell {
        FakeState state;
        double score;
        int previous;
        bool is_skipped;
    };
    const int last = model.n_modules();
    const int budget = weights.total(model.n_layers) / 2;
    std::vector<std::map<int, Cell>> g(static_cast<std::size_t>(last) + 1);
    g[2][0] = {model.target[2], static_cast<double>(model.n_rows), 0, false};
    for (int b = 2; b < last; ++b) {
        const int w = kind_of(b) == Module::attention ? weights.attention : weights.mlp;
        const auto& row = g[static_cast<std::size_t>(b)];
        auto& next = g[static_cast<std::size_t>(b) + 1];
        const auto set_if_better = [&](int j, const Cell& cell) {
            const auto held = next.find(j);
            if (cell.score / model.n_rows >= tau &&
                (held == next.end() || cell.score > held->second.score)) {
                next[j] = cell;
            }
        };
        for (const auto& [j, cell] : row) {
            const FakeState executed = model.run(b, Level::full, cell.state);
            set_if_better(j, {executed, model.score(b + 1, executed), j, false});
        }
        if (b < last - 2) {
            for (const auto& [j, cell] : row) {
                if (j + w <= budget) {
                    set_if_better(j + w, {cell.state, model.score(b + 1, cell.state), j, true});
                }
            }
        }
    }
    Found all;
    for (const auto& [saved, end] : g.back()) {
        ModulePlan plan(model.n_layers);
        int j = saved;
        for (int i = last; i >= 3; --i) {
            const Cell& cell = g[static_cast<std::size_t>(i)].at(j);
            if (cell.is_skipped) {
                plan.set((i - 1) / 2, kind_of(i - 1), Level::skip);
            }
            j = cell.previous;
        }
        all.emplace_back(saved, end.score, plan);
    }
    return all;
}

// The same with levels (docs/methods.md, "Level knapsack"): collects every state that reaches a
// cell and then picks the best one.
Found naive_search(const KnapsackProblem& problem, const FakeModel& model, double tau) {
    struct Arrival {
        FakeState state;
        ModulePlan plan;
        double score;
        int level_saves;
    };
    std::map<int, Arrival> row;
    row.insert({0, {model.target[0], ModulePlan(model.n_layers), 0, 0}});
    for (int module = 0; module < model.n_modules(); ++module) {
        std::map<int, std::vector<Arrival>> arrivals;
        const auto arrive = [&](const LevelChoice& choice, int saved, const Arrival& from) {
            Arrival arrival = from;
            arrival.state = model.run_or_skip(module, choice.level, from.state);
            arrival.plan.set(module / 2, kind_of(module), choice.level);
            arrival.score = model.score(module + 1, arrival.state);
            arrival.level_saves = choice.saved;
            if (saved + choice.saved <= problem.budget && arrival.score / model.n_rows >= tau) {
                arrivals[saved + choice.saved].push_back(arrival);
            }
        };
        std::vector<LevelChoice> choices = {{.level = Level::full, .saved = 0}};
        std::ranges::copy(problem.items[static_cast<std::size_t>(module)].cheaper,
                          std::back_inserter(choices));
        for (const LevelChoice& choice : choices) {
            for (const auto& [saved, from] : row) {
                arrive(choice, saved, from);
            }
        }
        row.clear();
        for (auto& [saved, all] : arrivals) {
            row.insert({saved, *std::ranges::min_element(all, {}, [](const Arrival& arrival) {
                            return std::pair(-arrival.score, arrival.level_saves);
                        })});
        }
    }
    Found all;
    for (const auto& [saved, end] : row) {
        all.emplace_back(saved, end.score, end.plan);
    }
    return all;
}

class KnapsackSeeds : public ::testing::TestWithParam<unsigned> {
  protected:
    int n_layers() const { return 2 + static_cast<int>(GetParam() % 3); }
    KnapsackProblem problem() const { return random_problem(GetParam(), n_layers()); }
};

TEST_P(KnapsackSeeds, AdditiveScoresAreSolvedExactly) {
    const FakeModel model = additive_model(GetParam(), n_layers());
    FakeEvaluator evaluator(model);
    EXPECT_EQ(found_scores(problem(), solve_knapsack(problem(), kNoPruning, evaluator)),
              best_scores(problem(), model));
}

TEST_P(KnapsackSeeds, LevelsFollowTheNaiveSearch) {
    for (const double tau : {-1.0, 0.5, 0.8}) {
        for (const FakeModel& model :
             {additive_model(GetParam(), n_layers()), residual_model(GetParam(), n_layers())}) {
            FakeEvaluator evaluator(model);
            EXPECT_EQ(found(problem(), solve_knapsack(problem(), {.min_cosine = tau}, evaluator)),
                      naive_search(problem(), model, tau));
        }
    }
}

TEST_P(KnapsackSeeds, SkipOrRunFollowsThePublishedPseudoCode) {
    for (const KindWeights& weights :
         {KindWeights{1, 1}, KindWeights{1, 2}, KindWeights{3, 1}, KindWeights{5, 1}}) {
        for (const double tau : {-1.0, 0.5, 0.9}) {
            const FakeModel model =
                residual_model(GetParam(), 1 + static_cast<int>(GetParam() % 7));
            const KnapsackProblem problem = skip_problem(weights, {.n_layers = model.n_layers});
            FakeEvaluator evaluator(model);
            EXPECT_EQ(found(problem, solve_knapsack(problem, {.min_cosine = tau}, evaluator)),
                      published_search(model, weights, tau));
        }
    }
}

TEST_P(KnapsackSeeds, WeightsOfPlansAscendUpToTheBudget) {
    const FakeModel model = residual_model(GetParam(), n_layers());
    FakeEvaluator evaluator(model);
    const KnapsackProblem given = problem();
    int before = -1;
    for (const KnapsackCandidate& candidate : solve_knapsack(given, kNoPruning, evaluator)) {
        const int saved = saved_by(given, candidate.plan);
        EXPECT_GT(saved, before);
        EXPECT_LE(saved, given.budget);
        before = saved;
    }
}

TEST_P(KnapsackSeeds, RunningAPlanGivesTheStateOfItsCandidate) {
    const FakeModel model = residual_model(GetParam(), n_layers());
    FakeEvaluator evaluator(model);
    const auto candidates = solve_knapsack(problem(), kNoPruning, evaluator);
    ASSERT_EQ(candidates.size(), evaluator.row().size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const FakeState state = model.run_plan(candidates[i].plan);
        EXPECT_EQ(state, evaluator.row()[i]);
        EXPECT_EQ(candidates[i].score, model.score(model.n_modules(), state));
    }
}

TEST_P(KnapsackSeeds, SearchesAreDeterministic) {
    const FakeModel model = residual_model(GetParam(), n_layers());
    FakeEvaluator first(model);
    FakeEvaluator second(model);
    const Found once = found(problem(), solve_knapsack(problem(), {}, first));
    EXPECT_EQ(found(problem(), solve_knapsack(problem(), {}, second)), once);
    EXPECT_EQ(found(problem(), solve_knapsack(problem(), {}, second)), once)
        << "an evaluator used again";
}

TEST_P(KnapsackSeeds, NoCandidateIsDominatedWhereDominatedCellsAreDropped) {
    const FakeModel model = residual_model(GetParam(), 6);
    FakeEvaluator evaluator(model);
    const KnapsackProblem wide = skip_problem({.attention = 2, .mlp = 1}, {.n_layers = 6});
    const auto candidates =
        solve_knapsack(wide, {.min_cosine = -1, .drop_dominated = true}, evaluator);
    EXPECT_TRUE(std::ranges::is_sorted(candidates, std::greater{}, &KnapsackCandidate::score));
    EXPECT_FALSE(candidates.empty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, KnapsackSeeds, ::testing::Range(0u, 60u));

// Compares with all plans of a model of four layers (docs/methods.md, "Worked examples").
TEST(KnapsackExhaustive, BestPlanOfACellIsMostlyFound) {
    int n_cells = 0;
    int n_best = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
        const FakeModel model = residual_model(seed, 4);
        const KnapsackProblem problem = skip_problem({.attention = 1, .mlp = 2}, {.n_layers = 4});
        FakeEvaluator evaluator(model);
        const auto scores = found_scores(problem, solve_knapsack(problem, kNoPruning, evaluator));
        const auto best = best_scores(problem, model);
        ASSERT_EQ(scores.size(), best.size());
        for (const auto& [saved, score] : scores) {
            EXPECT_LE(score, best.at(saved));
            ++n_cells;
            n_best += score == best.at(saved) ? 1 : 0;
        }
    }
    EXPECT_GT(n_best, n_cells * 3 / 4);
    EXPECT_LT(n_best, n_cells) << "the stream is too simple to lead the search astray";
}

// Ranks cells by the bound on the speedup (docs/methods.md, "When speculation pays"): drops cells
// that save little or have a low cosine.
TEST(KnapsackExhaustive, SpeedBoundRanksCells) {
    const FakeModel model = residual_model(5, 8);
    const KindWeights weights{.attention = 2, .mlp = 1};
    const KnapsackProblem problem = skip_problem(weights, {.n_layers = 8});
    const auto rank = [&](int saved, double mean_cosine) {
        const double draft_ratio = 1.0 - static_cast<double>(saved) / weights.total(8);
        return test::speedup_bound({.rest = mean_cosine}, draft_ratio, flat_verify(1, 10));
    };
    FakeEvaluator evaluator(model);
    const auto all = solve_knapsack(problem, {}, evaluator);
    const auto best = solve_knapsack(problem, {.max_cells = 4, .rank = rank}, evaluator);
    const auto rank_of = [&](const KnapsackCandidate& candidate) {
        return rank(saved_by(problem, candidate.plan), candidate.score / model.n_rows);
    };
    ASSERT_FALSE(all.empty());
    ASSERT_EQ(best.size(), 4u);
    EXPECT_GE(rank_of(*std::ranges::max_element(best, {}, rank_of)),
              0.9 * rank_of(*std::ranges::max_element(all, {}, rank_of)));
}

}  // namespace
}  // namespace knap::knapsack_property_test
