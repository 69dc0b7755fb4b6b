#include "sched/judge.hpp"

#include <algorithm>

#include "base/enum.hpp"
#include "base/text.hpp"
#include "sched/nominal.hpp"
#include "sched/search.hpp"

namespace zed::sched {
namespace {

/// As the person wrote it: "48 GB", "48 GiB", "2000 MiB".
std::string show_size(const MemorySize& size) {
  if (size.kind == MemorySize::Kind::nominal_gb) return std::to_string(size.amount) + " GB";
  std::string text = size.str();
  std::size_t unit = text.find_first_not_of("0123456789");
  return text.insert(unit, " ");
}

std::string show_vram(const Gpu& gpu) {
  auto nominal = nominal_size_gb(gpu);
  return nominal ? std::to_string(*nominal) + " GB" : show(gpu.vram_reported);
}

double missing_part(Bytes had, Bytes wanted) {
  if (wanted.value <= 0) return 0;
  double part = static_cast<double>(had.value) / static_cast<double>(wanted.value);
  return std::clamp(1 - part, 0.0, 1.0);
}

/// "2x NVIDIA A100-SXM4-80GB with 80 GB, RTX 3080 with 10 GB".
template <class Items, class Words> std::string count_words(const Items& items, Words&& words) {
  std::vector<std::pair<std::string, std::size_t>> counted;
  for (const auto& item : items) {
    std::string text = words(*item);
    auto known = std::find_if(counted.begin(), counted.end(),
                              [&](const auto& entry) { return entry.first == text; });
    if (known == counted.end())
      counted.emplace_back(std::move(text), 1);
    else
      ++known->second;
  }
  std::vector<std::string> parts;
  for (const auto& entry : counted)
    parts.push_back(entry.second == 1 ? entry.first
                                      : std::to_string(entry.second) + "x " + entry.first);
  return join(parts, ", ");
}

/// Judges one node. Members are what several clauses look at.
class Judge {
public:
  Judge(const Demand& demand, const Node& node, const std::vector<Attempt>& attempts)
      : demand_(demand), r_(demand.requirement), node_(node), attempts_(attempts),
        node_class_(std::make_shared<const NodeClass>(class_of(node))),
        state_(state_of(node, node_class_, attempts, demand.request.reservations)) {
    // GPUs are judged also on a node that another clause refuses.
    fit_.possible = true;
    for (std::size_t group = 0; group < node_class_->key.groups.size(); ++group)
      fit_.groups.push_back(fit_group(demand, *node_class_, group));
  }

  Judgement run() {
    judge_person();
    judge_status();
    judge_roots();
    judge_machine();
    if (demand_.family != Family::none) judge_gpus();
    return std::move(result_);
  }

private:
  void miss(std::string constraint, std::string wanted, std::string had, bool for_now,
            double by = 1) {
    result_.misses.push_back(
        {{std::move(constraint), std::move(wanted), std::move(had), for_now}, by});
  }

  void judge_person() {
    const auto& only = demand_.request.only;
    if (only && *only != node_.name) miss("node", only->str(), node_.name.str(), false);
    for (const Exclusion& exclusion : demand_.request.exclusions)
      if (exclusion.node == node_.name)
        miss("exclusion", "another node", exclusion.why, exclusion.for_now);
  }

  void judge_status() {
    if (node_.status != NodeStatus::up) {
      std::string had(to_string(node_.status));
      if (node_.status == NodeStatus::suspect || node_.status == NodeStatus::lost)
        had += ", silent for " + show(node_.silent);
      miss("status", "up", had, true);
    }
    if (!node_.facts.may_run_jobs)
      miss("permission", "an agent that may run jobs", "an agent for replication only", false);
    else if (!node_.facts.may_write_pool)
      miss("permission", "an agent that may write its pool", "a pool that it may only read", false);
  }

  void judge_roots() {
    for (const DatasetName& dataset : demand_.datasets) {
      if (node_class_->may_hold(dataset)) continue;
      std::vector<std::string> roots;
      for (const DatasetName& root : node_class_->key.roots)
        roots.push_back(root.str());
      miss("dataset", "a place for " + dataset.str(), "one for " + join(roots, ", ") + " only",
           false);
    }
  }

  void judge_machine() {
    const NodeFacts& facts = node_.facts;
    if (!r_.os.empty() && std::find(r_.os.begin(), r_.os.end(), facts.os) == r_.os.end())
      miss("os", join(r_.os, " or "), facts.os, false);
    for (const std::string& label : r_.labels)
      if (!node_class_->has_label(label))
        miss("labels", label,
             node_class_->key.labels.empty() ? "none" : join(node_class_->key.labels, ", "), false);
    if (facts.memory < demand_.ram)
      miss("memory", show_size(*r_.memory) + " of RAM", show(facts.memory), false,
           missing_part(facts.memory, demand_.ram));
    if (r_.disk && node_.pool_free < bounded(*r_.disk))
      miss("disk", show_size(*r_.disk) + " free in the pool", show(node_.pool_free) + " free", true,
           missing_part(node_.pool_free, bounded(*r_.disk)));
    Bytes cost = demand_.data_cost(node_.name);
    if (node_.pool_free < cost)
      miss("disk", show(cost) + " for its data", show(node_.pool_free) + " free", true,
           missing_part(node_.pool_free, cost));
  }

  std::size_t wanted_count() const {
    return static_cast<std::size_t>(demand_.count ? *demand_.count : 1);
  }

  /// One clause over all GPUs: fails if fewer than wanted pass it by themselves.
  template <class Passes, class Words>
  void gpu_clause(std::string constraint, std::string wanted, Passes&& passes, Words&& words,
                  double by = 1) {
    std::vector<const Gpu*> failing;
    std::size_t passing = 0;
    for (const Gpu& gpu : node_.gpus)
      if (passes(gpu))
        ++passing;
      else
        failing.push_back(&gpu);
    if (passing >= wanted_count() || failing.empty()) return;
    miss(std::move(constraint), std::move(wanted), count_words(failing, words), false, by);
  }

  void judge_gpus() {
    std::size_t before = result_.misses.size();
    if (node_.gpus.size() < wanted_count()) {
      std::string wanted = plural(wanted_count(), "GPU");
      std::string had = node_.gpus.empty()
                            ? std::string("none")
                            : count_words(pointers(), [](const Gpu& gpu) { return gpu.model; });
      miss("gpus", wanted, had, false,
           1 - static_cast<double>(node_.gpus.size()) / static_cast<double>(wanted_count()));
    }
    judge_vram();
    judge_names_and_versions();
    if (result_.misses.size() == before) judge_together();
  }

  std::vector<const Gpu*> pointers() const {
    std::vector<const Gpu*> all;
    for (const Gpu& gpu : node_.gpus)
      all.push_back(&gpu);
    return all;
  }

  bool has_vram(const Gpu& gpu) const {
    if (demand_.family == Family::shared)
      return gpu.vram_reported - gpu.vram_reserved >= demand_.each;
    return counted_vram(r_.vram->kind, gpu) >= demand_.each;
  }

  void judge_vram() {
    if (!r_.vram) return;
    Bytes most;
    for (const Gpu& gpu : node_.gpus)
      most = std::max(most, counted_vram(r_.vram->kind, gpu));
    gpu_clause(
        "vram", show_size(*r_.vram) + " per GPU", [&](const Gpu& gpu) { return has_vram(gpu); },
        [](const Gpu& gpu) { return gpu.model + " with " + show_vram(gpu); },
        missing_part(most, demand_.each));
  }

  void judge_names_and_versions() {
    auto named = [&](const Gpu& gpu) {
      return std::any_of(r_.gpu.begin(), r_.gpu.end(),
                         [&](const std::string& name) { return name_matches(name, gpu); });
    };
    auto of_arch = [&](const Gpu& gpu) {
      return std::any_of(r_.arch.begin(), r_.arch.end(),
                         [&](const std::string& arch) { return arch_satisfies(arch, gpu.arch); });
    };
    auto or_unknown = [](const std::string& text) { return text.empty() ? "unknown" : text; };
    if (!r_.gpu.empty())
      gpu_clause("gpu", join(r_.gpu, " or "), named, [](const Gpu& gpu) { return gpu.model; });
    if (!r_.arch.empty())
      gpu_clause("arch", join(r_.arch, " or "), of_arch,
                 [&](const Gpu& gpu) { return or_unknown(gpu.arch); });
    if (r_.driver)
      gpu_clause(
          "driver", "at least " + *r_.driver,
          [&](const Gpu& gpu) { return version_at_least(gpu.driver, *r_.driver); },
          [&](const Gpu& gpu) { return or_unknown(gpu.driver); });
    if (r_.cuda)
      gpu_clause(
          "cuda", "at least " + *r_.cuda,
          [&](const Gpu& gpu) { return version_at_least(gpu.cuda, *r_.cuda); },
          [&](const Gpu& gpu) { return or_unknown(gpu.cuda); });
  }

  bool is_eligible(const GpuSlot& slot) const { return fit_.groups[slot.group].eligible; }

  /// Whether a set exists if every slot that `is_open` says were free.
  template <class IsOpen> bool would_fit(IsOpen&& is_open) const {
    NodeState free = state_;
    free.give_back_all();
    for (std::size_t i = 0; i < free.slots.size(); ++i) {
      GpuSlot& slot = free.slots[i];
      slot.schedulable = is_open(state_.slots[i]);
      slot.crowded = false;
      slot.offered = node_.gpus[i].vram_reported - node_.gpus[i].vram_reserved;
    }
    return fits(free);
  }

  bool fits(const NodeState& state) const {
    Choice choice;
    return Chooser(demand_).choose(*node_class_, fit_, shape_of(demand_.family, state),
                                   demand_.wishes.size(), choice);
  }

  /// Every clause passes alone: now all of them at once, and what is free.
  void judge_together() {
    if (fits(state_)) return report_fit();
    if (!would_fit([](const GpuSlot&) { return true; })) return judge_impossible_set();
    bool without_broken = would_fit(
        [&](const GpuSlot& slot) { return slot.schedulable || is_temporary(gpu_of(slot).health); });
    judge_health(without_broken);
    judge_holds();
    judge_strangers();
    ZED_ASSERT(!result_.misses.empty());
  }

  static bool is_temporary(GpuHealth health) {
    return is_schedulable(health) || health == GpuHealth::stale || health == GpuHealth::reserved;
  }

  const Gpu& gpu_of(const GpuSlot& slot) const {
    return node_.gpus[static_cast<std::size_t>(&slot - state_.slots.data())];
  }

  void report_fit() {
    Choice choice;
    Chooser(demand_).choose(*node_class_, fit_, shape_of(demand_.family, state_),
                            demand_.wishes.size(), choice);
    result_.count = static_cast<std::int64_t>(pick(demand_, state_, choice).size());
    for (const GpuSlot& slot : state_.slots)
      if (is_eligible(slot) && is_open_now(slot)) result_.gpus.push_back(slot.uuid);
  }

  bool is_open_now(const GpuSlot& slot) const {
    return demand_.family == Family::shared ? slot.left() >= demand_.each && slot.left() > Bytes{}
                                            : slot.is_free();
  }

  void judge_impossible_set() {
    std::vector<const Gpu*> eligible;
    Bytes sum;
    bool unified = false;
    for (const GpuSlot& slot : state_.slots) {
      if (!is_eligible(slot)) continue;
      const Gpu& gpu = gpu_of(slot);
      eligible.push_back(&gpu);
      if (r_.vram_total) sum += counted_vram(r_.vram_total->kind, gpu);
      unified = unified || gpu.memory_kind == MemoryKind::unified;
    }
    auto words = [](const Gpu& gpu) { return gpu.model + " with " + show_vram(gpu); };
    std::string had = eligible.empty() ? "no GPU passes every clause at once"
                                       : "only " + count_words(eligible, words);
    if (eligible.empty() && judge_unified_memory()) return;
    if (r_.vram_total)
      miss("vram_total", show_size(*r_.vram_total) + " over GPUs of one vendor", had, false,
           missing_part(sum, bounded(*r_.vram_total)));
    else
      miss("gpus", plural(wanted_count(), "GPU") + " of one vendor with " + r_.str(), had, false,
           0.5);
  }

  /// RAM and VRAM asked of one pool that cannot hold both.
  bool judge_unified_memory() {
    Bytes pool = node_class_->key.unified_memory;
    if (!r_.memory || !r_.vram || pool == Bytes{} || pool >= demand_.ram + demand_.each)
      return false;
    miss("memory", show_size(*r_.memory) + " of RAM beside " + show_size(*r_.vram) + " for a GPU",
         show(pool) + " that both share", false, missing_part(pool, demand_.ram + demand_.each));
    return true;
  }

  void judge_health(bool others_would_do) {
    std::vector<const Gpu*> broken;
    bool all_temporary = true;
    for (const GpuSlot& slot : state_.slots) {
      if (slot.schedulable || !is_eligible(slot)) continue;
      broken.push_back(&gpu_of(slot));
      all_temporary = all_temporary && is_temporary(gpu_of(slot).health);
    }
    if (broken.empty()) return;
    std::string had = count_words(broken, [](const Gpu& gpu) {
      std::string text = gpu.model + " " + std::string(to_string(gpu.health));
      return gpu.why.empty() ? text : text + " (" + gpu.why + ")";
    });
    miss("health", wanted_free() + " in order", had, others_would_do || all_temporary, 0.1);
  }

  std::string wanted_free() const {
    if (demand_.family == Family::shared)
      return show_size(*r_.vram) + " of " + plural(wanted_count(), "GPU");
    return demand_.count ? plural(wanted_count(), "GPU") : show_size(*r_.vram_total) + " of GPUs";
  }

  void judge_holds() {
    std::vector<const Gpu*> held;
    for (const GpuSlot& slot : state_.slots)
      if (is_eligible(slot) && slot.schedulable && (slot.held_whole || slot.sharers > 0))
        held.push_back(&gpu_of(slot));
    if (held.empty()) return;
    std::string had =
        count_words(held, [&](const Gpu& gpu) { return gpu.model + " " + holders_of(gpu.uuid); });
    miss(demand_.family == Family::shared ? "vram" : "gpus", wanted_free() + " free", had, true,
         0.05);
  }

  std::string holders_of(const std::string& uuid) const {
    std::vector<std::string> names;
    auto holds = [&](const std::vector<std::string>& gpus) {
      return std::find(gpus.begin(), gpus.end(), uuid) != gpus.end();
    };
    for (const Attempt& attempt : attempts_)
      if (is_live(attempt) && holds(attempt.gpus)) names.push_back(attempt.dataset.str());
    std::sort(names.begin(), names.end());
    // A promise whose attempt is there says nothing new.
    for (const Reservation& reservation : demand_.request.reservations) {
      bool is_visible =
          std::any_of(attempts_.begin(), attempts_.end(), [&](const Attempt& attempt) {
            return is_live(attempt) && attempt.job == reservation.job;
          });
      if (reservation.node == node_.name && !is_visible && holds(reservation.gpus))
        names.emplace_back("a job that is about to start");
    }
    if (names.size() > 3) {
      std::size_t more = names.size() - 3;
      names.resize(3);
      names.push_back(std::to_string(more) + " more");
    }
    return "held by " + join(names, ", ");
  }

  void judge_strangers() {
    std::vector<const Gpu*> crowded;
    for (const GpuSlot& slot : state_.slots) {
      bool takes_room =
          demand_.family == Family::shared ? slot.offered < demand_.each : slot.crowded;
      if (is_eligible(slot) && slot.schedulable && takes_room) crowded.push_back(&gpu_of(slot));
    }
    if (crowded.empty()) return;
    miss("strangers", wanted_free() + " not used by others",
         count_words(crowded,
                     [](const Gpu& gpu) {
                       return gpu.model + " with " + show(gpu.vram_strangers) +
                              " used by processes that are not Zed's";
                     }),
         true, 0.08);
  }

  const Demand& demand_;
  const Requirement& r_;
  const Node& node_;
  const std::vector<Attempt>& attempts_;
  std::shared_ptr<const NodeClass> node_class_;
  NodeState state_;
  ClassFit fit_;
  Judgement result_;
};

}  // namespace

Judgement judge(const Demand& demand, const Node& node, const std::vector<Attempt>& attempts) {
  return Judge(demand, node, attempts).run();
}

}  // namespace zed::sched
