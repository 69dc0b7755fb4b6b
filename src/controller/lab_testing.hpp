#pragma once
// The fleet that this room's stories happen in, and what people ask of it.

#include <string>

#include <gtest/gtest.h>

#include "controller/testing.hpp"

namespace zed::controller::testing {

inline constexpr char cluster[] = R"(
deploy :lab, pool: "tank" do
  job :finetune do
    dataset "jobs/finetune-001"
    run ["train"]
    requires vram: 20
    prefer gpu: "A100"
    retries 1
  end
  job :other do
    dataset "jobs/other-001"
    run ["train"]
    requires vram: 20
    copies 0
  end
  job :huge do
    dataset "jobs/huge-001"
    run ["train"]
    requires vram: 500
  end
  job :infer do
    dataset "jobs/infer-001"
    model :llama
    run ["infer"]
    requires vram: 8
    prefer node: :workstation
  end
  job :second do
    dataset "jobs/second-001"
    run ["train"]
    after :finetune
  end
end
)";

/// A cluster file with these declarations.
inline std::string lab_with(const std::string& lines) {
  return "deploy :lab, pool: \"tank\" do\n" + lines + "\nend\n";
}

inline World lab(const std::string& machine = "") {
  World world("server: A100/80 x2; workstation: RTX 4090/24; laptop:",
              machine.empty() ? NodeName{} : node(machine));
  auto applied = world.apply(cluster);
  EXPECT_TRUE(applied) << applied.error().describe();
  return world;
}

inline std::string text(const Value& value, std::string_view key) {
  const Value* member = value.find(key);
  return member != nullptr && member->as_text() != nullptr ? *member->as_text() : "";
}

inline api::Rollback rollback_to(const std::string& job, const std::string& checkpoint) {
  api::Rollback op;
  op.job = job;
  op.checkpoint = checkpoint;
  return op;
}

inline api::Resume resume(const std::string& job, const std::string& from = "",
                          const std::string& on = "") {
  api::Resume op;
  op.job = job;
  op.from = from;
  op.on = on;
  return op;
}

template <class Op> Op on_job(const std::string& job) {
  Op op;
  op.job = job;
  return op;
}

}  // namespace zed::controller::testing
