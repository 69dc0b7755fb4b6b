deploy :fleet, pool: "tank" do
  job :train do
    prefer "A100"
    fallback gpu: :a100, nod: :server, node: "server", label: []
  end
end
