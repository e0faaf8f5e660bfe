#include "text/grammar/grammar_work.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "base/error.h"

namespace knap {
namespace {

using Kind = GrammarRules::Element::Kind;

// Each limit takes libllama a third of a second at most, and 50 MB, on one core of a server of
// 2023.
constexpr double kMaxWays = 16'384;        // it compares each with each
constexpr double kMaxStacked = 4'000'000;  // steps times the rules that each is inside of
constexpr double kMaxVisits = 10'000'000;  // of rules, when it looks for left recursion

class GrammarWork {
  public:
    explicit GrammarWork(const GrammarRules& rules)
        : rules_(rules),
          may_be_empty_(empty_rules(rules)),
          firsts_(rules.n_rules()),
          work_(rules.n_rules()),
          visits_(rules.n_rules()) {
        for (std::uint32_t rule = 0; rule < rules.n_rules(); ++rule) {
            for (const std::uint32_t start : rules.alternatives(rule)) {
                for_each_first(start, [&](std::uint32_t next) { firsts_[rule].push_back(next); });
            }
        }
    }

    void check() {
        measure_rules();
        double visits = 0;
        std::vector<bool> is_visited(rules_.n_rules());
        for (std::uint32_t rule = 0; rule < rules_.n_rules(); ++rule) {
            visits += is_visited[rule] ? 0 : visits_[rule];
            mark_firsts(rule, is_visited);
        }
        refuse_over(visits, kMaxVisits);
        for (std::uint32_t rule = 0; rule < rules_.n_rules(); ++rule) {
            refuse_large(work_[rule]);
            for (const std::uint32_t start : rules_.alternatives(rule)) {
                check_places(start);
            }
        }
    }

  private:
    // Of beginning a rule, or of going on somewhere. Doubles do not overflow.
    struct Work {
        double ways = 0;   // each at another character, or at the end
        double steps = 0;  // on the way to all of them
        double depth = 0;  // most rules inside each other, each with something after it
        bool has_text = false;
    };

    static void refuse_over(double work, double limit) {
        if (!(work <= limit)) {
            fail(
                "`.grammar`: expected rules that compile within a second, found too many ways to "
                "go on");
        }
    }

    static void refuse_large(const Work& work) {
        refuse_over(work.ways, kMaxWays);
        refuse_over(work.steps * (1 + work.depth), kMaxStacked);
    }

    // Calls `visit` for the rules that an alternative may begin with.
    template <typename Visit>
    void for_each_first(std::uint32_t start, const Visit& visit) const {
        for (std::uint32_t i = start; rules_.element(i).kind == Kind::rule; ++i) {
            const std::uint32_t rule = rules_.element(i).index;
            visit(rule);
            if (!may_be_empty_[rule]) {
                return;
            }
        }
    }

    static std::vector<bool> empty_rules(const GrammarRules& rules) {
        struct Alternative {
            std::uint32_t rule;
            std::uint32_t n_left;  // elements that are not known to be empty
        };
        std::vector<bool> may_be_empty(rules.n_rules());
        std::vector<Alternative> alternatives;
        std::vector<std::vector<std::size_t>> users(rules.n_rules());  // alternatives with a rule
        std::vector<std::uint32_t> found;
        const auto mark = [&](std::uint32_t rule) {
            if (!may_be_empty[rule]) {
                may_be_empty[rule] = true;
                found.push_back(rule);
            }
        };
        for (std::uint32_t rule = 0; rule < rules.n_rules(); ++rule) {
            for (const std::uint32_t start : rules.alternatives(rule)) {
                std::uint32_t end = start;
                for (; rules.element(end).kind == Kind::rule; ++end) {
                    users[rules.element(end).index].push_back(alternatives.size());
                }
                const bool has_text = rules.element(end).kind != Kind::end;
                alternatives.push_back({rule, end - start + (has_text ? 1u : 0u)});
                if (alternatives.back().n_left == 0) {
                    mark(rule);
                }
            }
        }
        while (!found.empty()) {
            const std::uint32_t rule = found.back();
            found.pop_back();
            for (const std::size_t user : users[rule]) {
                if (--alternatives[user].n_left == 0) {
                    mark(alternatives[user].rule);
                }
            }
        }
        return may_be_empty;
    }

    void mark_firsts(std::uint32_t first, std::vector<bool>& is_marked) const {
        std::vector<std::uint32_t> open{first};
        while (!open.empty()) {
            const std::uint32_t rule = open.back();
            open.pop_back();
            if (!is_marked[rule]) {
                is_marked[rule] = true;
                open.insert(open.end(), firsts_[rule].begin(), firsts_[rule].end());
            }
        }
    }

    // Rules that begin with each other are measured together, after those that they begin with:
    // Tarjan's algorithm, not recursively, as there may be thousands inside each other.
    void measure_rules() {
        struct Visit {
            std::uint32_t rule;
            std::size_t next;  // of firsts_
        };
        constexpr std::uint32_t kUnseen = 0;
        constexpr std::uint32_t kDone = UINT32_MAX;
        std::vector<std::uint32_t> order(rules_.n_rules(), kUnseen);
        std::vector<std::uint32_t> lowest(rules_.n_rules());  // in the order, that a rule leads to
        std::vector<std::uint32_t> group;
        std::vector<Visit> visits;
        std::uint32_t n_seen = 0;
        const auto begin = [&](std::uint32_t rule) {
            order[rule] = lowest[rule] = ++n_seen;
            group.push_back(rule);
            visits.push_back({rule, 0});
        };
        for (std::uint32_t first = 0; first < rules_.n_rules(); ++first) {
            if (order[first] == kUnseen) {
                begin(first);
            }
            while (!visits.empty()) {
                const std::uint32_t rule = visits.back().rule;
                if (visits.back().next < firsts_[rule].size()) {
                    const std::uint32_t next = firsts_[rule][visits.back().next++];
                    if (order[next] == kUnseen) {
                        begin(next);
                    } else if (order[next] != kDone) {
                        lowest[rule] = std::min(lowest[rule], order[next]);
                    }
                    continue;
                }
                visits.pop_back();
                if (!visits.empty()) {
                    const std::uint32_t before = visits.back().rule;
                    lowest[before] = std::min(lowest[before], lowest[rule]);
                }
                if (lowest[rule] == order[rule]) {
                    const auto members = std::find(group.rbegin(), group.rend(), rule).base() - 1;
                    measure({members, group.end()});
                    for (auto member = members; member != group.end(); ++member) {
                        order[*member] = kDone;
                    }
                    group.erase(members, group.end());
                }
            }
        }
    }

    // Of rules that begin with each other. Where nothing follows, as in a repetition of what may be
    // empty, libllama is back where it was, and knows; otherwise there is ever more to follow.
    void measure(const std::vector<std::uint32_t>& group) {
        const std::set<std::uint32_t> members(group.begin(), group.end());
        Work sum;
        double visits = 1;
        for (const std::uint32_t rule : group) {
            for (const std::uint32_t start : rules_.alternatives(rule)) {
                std::uint32_t place = start;
                for_each_first(start, [&](std::uint32_t next) {
                    const bool is_last = rules_.element(++place).kind == Kind::end;
                    if (members.contains(next) && !is_last) {
                        fail(
                            "`.grammar`: expected rules that do not begin with themselves, found "
                            "left recursion");
                    }
                    visits += visits_[next];
                });
                const Work work = work_at(start);
                sum.ways += work.ways;
                sum.steps += work.steps;
                sum.depth = std::max(sum.depth, work.depth);
                sum.has_text |= work.has_text;
            }
        }
        for (const std::uint32_t rule : group) {
            if (!sum.has_text && !may_be_empty_[rule]) {
                fail("`.grammar`: expected rules that lead to a text, found one that does not");
            }
            work_[rule] = sum;
            visits_[rule] = visits;
        }
    }

    // Of going on with this element.
    Work work_at(std::uint32_t start) const {
        Work work{.steps = 1};
        std::uint32_t place = start;
        bool goes_past = true;  // all rules so far
        for_each_first(start, [&](std::uint32_t rule) {
            const bool is_last = rules_.element(++place).kind == Kind::end;
            work.ways += work_[rule].ways;
            work.steps += 1 + work_[rule].steps;
            work.depth = std::max(work.depth, work_[rule].depth + (is_last ? 0 : 1));
            work.has_text |= work_[rule].has_text;
            goes_past = may_be_empty_[rule];
        });
        work.ways += goes_past ? 1 : 0;
        work.has_text |= goes_past && rules_.element(place).kind != Kind::end;
        return work;
    }

    // Everywhere in an alternative: a text goes on after each of its characters.
    void check_places(std::uint32_t start) const {
        for (std::uint32_t i = start; rules_.element(i).kind != Kind::end; ++i) {
            const bool follows_text = i == start || rules_.element(i - 1).kind != Kind::rule ||
                                      !may_be_empty_[rules_.element(i - 1).index];
            if (follows_text) {
                refuse_large(work_at(i));
            }
        }
    }

    const GrammarRules& rules_;
    std::vector<bool> may_be_empty_;
    std::vector<std::vector<std::uint32_t>> firsts_;  // rules that each may begin with
    std::vector<Work> work_;                          // of beginning each rule
    std::vector<double> visits_;  // of the rules that it may begin with, and theirs
};

}  // namespace

void check_grammar_work(const GrammarRules& rules) {
    GrammarWork(rules).check();
}

}  // namespace knap
