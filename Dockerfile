# One image for broker, web, worker and beat: docker-compose.yml names the command of each.
FROM node:20-slim AS dashboard
WORKDIR /src/frontend
COPY frontend/package.json frontend/package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY frontend/ ./
RUN npm run build

FROM python:3.11-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends openssl \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --create-home highwater \
    && install -d -o highwater -g highwater /data /certs
WORKDIR /app
COPY requirements/base.txt requirements/base.txt
RUN pip install --no-cache-dir --require-hashes -r requirements/base.txt
COPY .docker/ .docker/
COPY manage.py ./
COPY broker_engine/ broker_engine/
COPY platform/ platform/
COPY api/ api/
COPY web/ web/
COPY --from=dashboard /src/web/static/dashboard web/static/dashboard
ENV PYTHONPATH=/app:/app/platform \
    PYTHONUNBUFFERED=1 \
    DJANGO_SETTINGS_MODULE=control_plane.settings \
    HIGHWATER_HOME=/data
USER highwater
