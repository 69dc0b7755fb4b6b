#pragma once
// Under which names an agent makes datasets. Pure. The controller tells each agent what is declared
// and warns of what none would take a copy of; agents hold to it.

#include <vector>

#include "core/cluster.hpp"
#include "core/names.hpp"

namespace zed {

/// The datasets of the models, data and jobs that a cluster file declares: in order, each once.
std::vector<DatasetName> declared_roots(const Cluster& cluster);

/// Whether an agent that knows these declared roots makes a dataset of this name: under one of
/// them, or under Zed's own (models, jobs, zed).
bool may_be_made(const DatasetName& name, const std::vector<DatasetName>& declared);

}  // namespace zed
