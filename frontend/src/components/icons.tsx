// Line icons on a 20-unit grid; decoration only, the words beside them carry the meaning.
import type { ReactNode } from "react";

const icon = (children: ReactNode) =>
  function Icon() {
    return (
      <svg className="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
        {children}
      </svg>
    );
  };

export const TopicsIcon = icon(<path d="M3 5h14M3 10h14M3 15h9" />);
export const KeyIcon = icon(<path d="M12.5 3.5a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM9.5 10.5l-6 6M5 15l2 2" />);
export const ClusterIcon = icon(<path d="M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.2M6 13.5h.2M10 6.5h4M10 13.5h4" />);
export const GroupsIcon = icon(
  <path d="M7.5 4.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5ZM3 16a4.5 4.5 0 0 1 9 0M13 5.2a2.2 2.2 0 0 1 0 4.1M14.3 12a4.2 4.2 0 0 1 2.9 4" />,
);
export const PlusIcon = icon(<path d="M10 4v12M4 10h12" />);
export const CloseIcon = icon(<path d="m5 5 10 10M15 5 5 15" />);
export const CheckIcon = icon(<path d="m4 10.5 4 4 8-9" />);
export const CopyIcon = icon(<path d="M7 7h9v9H7zM4 13V4h9" />);
export const PauseIcon = icon(<path d="M7 4.5v11M13 4.5v11" />);
export const PlayIcon = icon(<path d="M6.5 4.5v11l9-5.5z" />);
export const SearchIcon = icon(<path d="M8.5 3.5a5 5 0 1 0 0 10 5 5 0 0 0 0-10ZM12.5 12.5l4 4" />);
export const SunIcon = icon(
  <path d="M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7ZM10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2M4 4l1.4 1.4M14.6 14.6 16 16M4 16l1.4-1.4M14.6 5.4 16 4" />,
);
export const MoonIcon = icon(<path d="M16 11.5A6.5 6.5 0 0 1 8.5 4a6.5 6.5 0 1 0 7.5 7.5Z" />);
export const SystemIcon = icon(<path d="M3 4h14v9H3zM7 16.5h6M10 13v3.5" />);
export const SendIcon = icon(<path d="m3 10 14-6-5 13-2.5-5.5z" />);
export const LinkIcon = icon(
  <path d="M8.5 11.5a3 3 0 0 0 4.2 0l3-3a3 3 0 0 0-4.2-4.2l-1 1M11.5 8.5a3 3 0 0 0-4.2 0l-3 3a3 3 0 0 0 4.2 4.2l1-1" />,
);
export const ChevronIcon = icon(<path d="m5 8 5 5 5-5" />);
export const TrashIcon = icon(<path d="M4 6h12M8 6V4h4v2M6 6l.7 10.5h6.6L14 6" />);
export const AlertIcon = icon(<path d="M10 3 2 16.5h16zM10 8.5v4M10 14.4v.2" />);
export const BookIcon = icon(<path d="M4 4.5A1.5 1.5 0 0 1 5.5 3H16v14H5.5A1.5 1.5 0 0 1 4 15.5zM4 14.5h12" />);
