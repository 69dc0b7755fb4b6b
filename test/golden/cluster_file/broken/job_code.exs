deploy :fleet, pool: "tank" do
  job :train do
    code :src
    setup ""
    model "llama"
  end
end
