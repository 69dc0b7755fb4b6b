# The verbs of the cluster file stand without parentheses. A project that depends on :zed says
# `import_deps: [:zed]` in its own .formatter.exs.
verbs = [
  deploy: :*,
  node: :*,
  gpu: :*,
  labels: :*,
  dataset: :*,
  model: :*,
  version: :*,
  file: :*,
  requires: :*,
  job: :*,
  run: :*,
  shell: :*,
  env: :*,
  code: :*,
  setup: :*,
  data: :*,
  prefer: :*,
  fallback: :*,
  checkpoint_every: :*,
  after: :*,
  priority: :*,
  retries: :*,
  timeout: :*,
  keep: :*,
  copies: :*,
  exclusive: :*,
  rollback_when: :*,
  replicate: :*,
  from: :*,
  to: :*,
  filter: :*,
  every: :*,
  max_rate: :*
]

[
  inputs: ["{mix,.formatter}.exs", "{lib,test}/**/*.{ex,exs}"],
  locals_without_parens: verbs,
  export: [locals_without_parens: verbs]
]
