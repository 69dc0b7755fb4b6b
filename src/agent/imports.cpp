// Imports: files of this machine, and code by its content, become datasets.

#include <algorithm>

#include "agent/matters.hpp"

namespace zed::agent {
namespace {

constexpr std::size_t most_imports = 16;

bool is_code(const ImportFiles& action) {
  return action.dataset.str() == code_root;
}

void import_code(Machine& m, const Step& step, const ImportFiles& action) {
  bool queued = m.take_turn(action.dataset, [&m, step, action](Turn turn) {
    m.imports[step->step().id] = {step, action, std::move(turn)};
    m.emit(ImportPath{step->step().id, action});
  });
  if (!queued)
    step->fail(ErrorCode::busy, "too many folders of code wait on " + m.name.str(), plans_again);
}

}  // namespace

void import_files(Machine& m, const Step& step, const ImportFiles& action) {
  if (auto allowed = may_make(m, action.dataset); !allowed) return step->fail(allowed.error());
  if (is_code(action)) return import_code(m, step, action);
  if (m.imports.size() >= most_imports)
    return step->fail(ErrorCode::busy, "too many imports run on " + m.name.str(), plans_again);
  with_checked(m, step, action.dataset, [&m, step, action](Turn, std::optional<Dataset> there) {
    if (there && there->find(action.snapshot) != nullptr) return step->succeed(action.snapshot);
    auto uuid = action.properties.find(property::uuid);
    bool other = there && (uuid == action.properties.end() || there->uuid.str() != uuid->second);
    if (other)
      return step->fail(ErrorCode::exists, there->name.str() + " is there already",
                        "choose another name");
    bool same_target = std::any_of(m.imports.begin(), m.imports.end(), [&](const auto& entry) {
      return entry.second.action.dataset == action.dataset;
    });
    if (same_target)
      return step->fail(ErrorCode::busy, "an import into it runs already", plans_again);
    m.imports[step->step().id] = {step, action, nullptr};
    m.emit(ImportPath{step->step().id, action});
  });
}

void import_ended(Machine& m, const ImportEnded& event) {
  auto found = m.imports.extract(event.step);
  if (found.empty()) return;
  Step step = found.mapped().step;
  auto answer = [step, result = event.result] {
    if (!result) return step->fail(result.error());
    step->succeed(result->id);
  };
  const ImportFiles& action = found.mapped().action;
  const bool named_by_content = is_code(action) && event.result;
  DatasetName dataset = named_by_content ? code_dataset(event.result->id) : action.dataset;
  bool queued = m.take_turn(dataset, [&m, dataset, answer](Turn turn) {
    refresh(m, dataset, [answer, turn] { answer(); });
  });
  if (!queued) answer();
}

}  // namespace zed::agent
