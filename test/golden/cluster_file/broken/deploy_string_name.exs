deploy "fleet" do
end
