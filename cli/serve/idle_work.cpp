#include "cli/serve/idle_work.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "base/log.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"
#include "runtime/files/plans_file.h"
#include "runtime/files/profile_file.h"
#include "tools/profile/kept_profile.h"
#include "tools/profile/profiling.h"

namespace knap {
namespace {

constexpr double kMeasureSeconds = 6;
// Shorter texts have nothing to leave out.
constexpr std::size_t kLeastText = 512;

class IdleLearner {
  public:
    explicit IdleLearner(Engine& engine) : engine_(engine) {}

    bool learn(const std::vector<Token>& text, const std::function<bool()>& must_stop) {
        Engine::Impl& impl = impl_of(engine_);
        const auto costs_path = profile_path(machine_fingerprint(impl));
        if (!costs_path || n_attempts_ >= kMaxAttempts) {
            return false;
        }
        if (known_profile(impl).samples.empty()) {
            return measure(*costs_path, must_stop);
        }
        return text.size() >= kLeastText && search(text, must_stop);
    }

  private:
    // A machine that is never quiet is not measured for ever.
    static constexpr int kMaxAttempts = 20;

    bool measure(const std::filesystem::path& path, const std::function<bool()>& must_stop) {
        const auto profile = profile_engine(engine_, kMeasureSeconds, {.is_cancelled = must_stop});
        if (!profile) {
            return false;
        }
        Engine::Impl& impl = impl_of(engine_);
        const KeptProfile kept = keep_profile(*profile, known_profile(impl));
        if (!kept.is_new()) {
            ++n_attempts_;
            return false;
        }
        save_profile(path, *kept.profile, machine_fingerprint(impl));
        log_info("measured the costs of passes in idle time: ", path.string());
        return true;
    }

    // Searches at contexts that no saved plan covers.
    bool search(const std::vector<Token>& text, const std::function<bool()>& must_stop) {
        Engine::Impl& impl = impl_of(engine_);
        const PlansModel model = plans_model(impl);
        const auto path = plans_path(model);
        std::vector<SavedPlan> plans = known_plans(impl);
        const auto contexts = plan_contexts(static_cast<int>(text.size()), engine_.config().n_ctx);
        const bool is_known = std::ranges::any_of(
            plans, [&](const SavedPlan& plan) { return plan.n_context == contexts.back(); });
        if (!path || is_known) {
            return false;
        }
        bool has_found = false;
        const auto keep = [&](const PlansAtContext& found) {
            std::erase_if(plans,
                          [&](const SavedPlan& plan) { return plan.n_context == found.n_context; });
            std::ranges::copy(to_saved(found), std::back_inserter(plans));
            save_plans(*path, model, plans);
            has_found = true;
        };
        find_plans(engine_, text, CostModel(known_profile(impl)), keep,
                   {.is_cancelled = must_stop});
        return has_found;
    }

    Engine& engine_;
    int n_attempts_ = 0;
};

}  // namespace

IdleWork idle_work(Engine& engine) {
    return [learner = std::make_shared<IdleLearner>(engine)](
               const std::vector<Token>& text, const std::function<bool()>& must_stop) {
        return learner->learn(text, must_stop);
    };
}

}  // namespace knap
