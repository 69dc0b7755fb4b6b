deploy :fleet, pool: "tank" do
  nod :server
  modle :llama do
    vershun "1"
  end
  Job :x
  frobnicate :y
end
