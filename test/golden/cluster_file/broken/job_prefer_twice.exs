deploy :fleet, pool: "tank" do
  job :train do
    prefer gpu: ["A100", "A100"]
    fallback [["gpu"]]
  end
end
