deploy :fleet, pool: "tank" do
  replicate :"../models" do
    from :a
    to :b
  end
  replicate "models" do
    from :a
    to :b
  end
end
