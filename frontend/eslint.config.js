import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

const wall = (message, group) => ({ "no-restricted-imports": ["error", { patterns: [{ group, message }] }] });
const feature = (name) => ({
  files: [`src/features/${name}/**`],
  rules: wall("Features never import each other, nor the app around them.", [
    ...["session", "topics", "topic", "keys", "cluster"]
      .filter((other) => other !== name)
      .map((other) => `**/${other}/**`),
    "**/app/**",
    "!**/api/**",
  ]),
});

export default tseslint.config(
  { ignores: ["node_modules", "public", "*.config.js"] },
  ...tseslint.configs.strictTypeChecked,
  { languageOptions: { parserOptions: { projectService: true } } },
  {
    files: ["src/**/*.{ts,tsx}"],
    plugins: { "react-hooks": hooks },
    rules: {
      ...hooks.configs.recommended.rules,
      // Opening a socket subscription is what effects are for; its handle is then state.
      "react-hooks/set-state-in-effect": "off",
      "max-lines": ["error", 400],
      "@typescript-eslint/no-confusing-void-expression": [
        "error",
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "no-restricted-globals": ["error", { name: "fetch", message: "Only src/api/http.ts talks to the server." }],
    },
  },
  { files: ["src/api/http.ts"], rules: { "no-restricted-globals": "off" } },
  {
    files: ["src/components/**"],
    rules: wall("Components know neither features nor the app.", ["**/features/**", "**/app/**"]),
  },
  feature("session"),
  feature("topics"),
  feature("topic"),
  feature("keys"),
  feature("cluster"),
  {
    files: ["dev/**", "vite.config.ts"],
    rules: {
      "@typescript-eslint/restrict-template-expressions": "off",
      "@typescript-eslint/no-confusing-void-expression": "off",
    },
  },
);
