deploy :fleet do
end
