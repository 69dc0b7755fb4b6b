deploy :fleet, pool: “tank” do
end
