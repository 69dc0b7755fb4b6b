deploy pool: "tank" do
end
