export const mockBackend = () => ({ name: "mock" });
